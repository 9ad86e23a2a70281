package io.labrys.mends;

import java.util.Arrays;
import java.util.List;
import java.util.function.Predicate;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.VarInsnNode;

/** Finds places in the code of a class. A place that is missing, or there twice, ends the build. */
final class Code {
    private Code() {}

    /** Returns instructions that load a field of this object with a long number. */
    static InsnList field(ClassNode node, String name) {
        InsnList made = new InsnList();
        made.add(new VarInsnNode(Opcodes.ALOAD, 0));
        made.add(new FieldInsnNode(Opcodes.GETFIELD, node.name, name, "J"));
        return made;
    }

    /** Returns the internal name of a class of this package. It is not loaded here, as it can need classes of the program. */
    static String ours(String called) {
        return "io/labrys/mends/" + called;
    }

    static boolean puts(AbstractInsnNode each, String field) {
        return each instanceof FieldInsnNode put && put.getOpcode() == Opcodes.PUTFIELD && put.name.equals(field);
    }

    static MethodNode method(ClassNode node, String name) {
        List<MethodNode> found = node.methods.stream().filter(each -> each.name.equals(name)).toList();
        if (found.size() != 1) {
            throw new IllegalStateException("expected one method " + name + " in " + node.name + ", found " + found.size());
        }
        return found.get(0);
    }

    static AbstractInsnNode only(MethodNode method, Predicate<AbstractInsnNode> wanted) {
        List<AbstractInsnNode> found = Arrays.stream(method.instructions.toArray()).filter(wanted).toList();
        if (found.size() != 1) {
            throw new IllegalStateException("expected one place in " + method.name + ", found " + found.size());
        }
        return found.get(0);
    }
}
