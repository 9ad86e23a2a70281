package io.labrys.simjvm.weave;

import io.labrys.simjvm.run.Statics;
import java.util.List;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.FieldNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.MethodNode;

/**
 * Adds the method {@code Statics.RESET} to a class with static fields that can change: those that are not final, and those whose
 * type has objects that change.
 *
 * <p>Interfaces and enumerations have no such method: the JVM lets no code change the fields of an interface, and it remembers the
 * constants of an enumeration.
 */
final class StaticFields {
    private static final String INITIALIZER = "<clinit>";
    private static final String NOTHING = "()V";
    private static final int ADDED = Opcodes.ACC_PUBLIC | Opcodes.ACC_STATIC | Opcodes.ACC_SYNTHETIC;

    private final ClassNode type;
    private final List<FieldNode> changing;

    StaticFields(ClassNode type) {
        this.type = type;
        boolean keeps = (type.access & (Opcodes.ACC_INTERFACE | Opcodes.ACC_ENUM)) != 0 || HookTable.keepsStatics(type.name);
        changing = keeps ? List.of() : type.fields.stream().filter(StaticFields::canChange).toList();
    }

    private static boolean canChange(FieldNode field) {
        if ((field.access & Opcodes.ACC_STATIC) == 0) {
            return false;
        }
        if ((field.access & Opcodes.ACC_FINAL) == 0) {
            return true;
        }
        Type held = Type.getType(field.desc);
        return held.getSort() == Type.ARRAY || held.getSort() == Type.OBJECT && !HookTable.isConstant(held.getInternalName());
    }

    /** Gives the class an initializer if it has none, and lets its fields be set outside of it. Comes before the weaving of methods. */
    void prepare() {
        if (changing.isEmpty()) {
            return;
        }
        changing.forEach(field -> field.access &= ~Opcodes.ACC_FINAL);
        if (initializer() == null) {
            MethodNode made = new MethodNode(Opcodes.ACC_STATIC, INITIALIZER, NOTHING, null, null);
            made.instructions.add(new InsnNode(Opcodes.RETURN));
            type.methods.add(made);
        }
    }

    /** Adds the method, which does what the woven initializer does. */
    void addReset() {
        if (changing.isEmpty()) {
            return;
        }
        MethodNode initializer = initializer();
        for (AbstractInsnNode each : initializer.instructions.toArray()) {
            if (each.getOpcode() == Opcodes.RETURN) {
                initializer.instructions.insertBefore(each, Weaver.call("initialized", type));
            }
        }
        MethodNode reset = new MethodNode(Opcodes.ASM9, ADDED, Statics.RESET, NOTHING, null, null);
        initializer.accept(reset);
        for (AbstractInsnNode each : reset.instructions.toArray()) {
            if (each instanceof FieldInsnNode set && set.getOpcode() == Opcodes.PUTSTATIC && set.owner.equals(type.name)
                && changing.stream().noneMatch(field -> field.name.equals(set.name))) {
                boolean isWide = Type.getType(set.desc).getSize() > 1;
                reset.instructions.set(each, new InsnNode(isWide ? Opcodes.POP2 : Opcodes.POP));
            }
        }
        InsnList zeros = new InsnList();
        for (FieldNode field : changing) {
            zeros.add(first(field));
            zeros.add(new FieldInsnNode(Opcodes.PUTSTATIC, type.name, field.name, field.desc));
        }
        reset.instructions.insert(zeros);
        type.methods.add(reset);
    }

    private MethodNode initializer() {
        return type.methods.stream().filter(method -> method.name.equals(INITIALIZER)).findFirst().orElse(null);
    }

    /** Returns the instruction for the value of a field before the initializer. */
    private static AbstractInsnNode first(FieldNode field) {
        if (field.value != null) {
            return new LdcInsnNode(field.value);
        }
        return new InsnNode(switch (Type.getType(field.desc).getSort()) {
            case Type.OBJECT, Type.ARRAY -> Opcodes.ACONST_NULL;
            case Type.LONG -> Opcodes.LCONST_0;
            case Type.DOUBLE -> Opcodes.DCONST_0;
            case Type.FLOAT -> Opcodes.FCONST_0;
            default -> Opcodes.ICONST_0;
        });
    }
}
