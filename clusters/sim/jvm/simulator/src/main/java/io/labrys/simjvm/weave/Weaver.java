package io.labrys.simjvm.weave;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Handle;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.objectweb.asm.commons.ClassRemapper;
import org.objectweb.asm.commons.Remapper;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.FrameNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.InvokeDynamicInsnNode;
import org.objectweb.asm.tree.LabelNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.LineNumberNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.TryCatchBlockNode;
import org.objectweb.asm.tree.VarInsnNode;

/**
 * Changes a class so that it runs in the simulation:
 * <ul>
 *   <li>It uses the types and calls the methods of {@link HookTable}.
 *   <li>Monitors, {@code synchronized} methods, {@code wait} and {@code notify} are those of the simulation.
 *   <li>Threads of the program can stall before an access of a field, but not in constructors.
 *   <li>A handler that catches everything throws the error of a kill again.
 *   <li>Its initializer is not interrupted, because the JVM itself lets other threads wait for its end.
 *   <li>Its static fields can be reset, if they can change; see {@code Statics}.
 *   <li>It has no finalizer: the JVM calls one on a thread of its own, at a time that depends on the memory.
 *   <li>A call that would leave the simulation ends the run.
 * </ul>
 */
final class Weaver {
    private static final String THROWABLE = "java/lang/Throwable";
    private static final Set<String> CATCH_ALL = Set.of(THROWABLE, "java/lang/Error", "java/lang/VirtualMachineError",
        "java/lang/LinkageError");
    private static final String OBJECT_ARGUMENT = "(Ljava/lang/Object;)V";

    private static final Remapper TYPES = new Remapper() {
        @Override
        public String map(String name) {
            return HookTable.type(name);
        }
    };

    private Weaver() {}

    /** Returns a class that uses the types of {@link HookTable}. */
    static ClassNode renamed(byte[] original) {
        ClassNode type = new ClassNode();
        new ClassReader(original).accept(new ClassRemapper(type, TYPES), ClassReader.EXPAND_FRAMES);
        return type;
    }

    /** Returns the changed class. */
    static byte[] woven(byte[] original) {
        ClassNode type = renamed(original);
        type.methods.removeIf(method -> method.name.equals("finalize") && method.desc.equals("()V"));
        StaticFields statics = new StaticFields(type);
        statics.prepare();
        for (MethodNode method : type.methods) {
            if (method.instructions.size() > 0) {
                weave(type, method);
            }
        }
        statics.addReset();
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        type.accept(writer);
        return writer.toByteArray();
    }

    private static void weave(ClassNode type, MethodNode method) {
        boolean hasPoints = HookTable.hasPoints(type.name) && !method.name.startsWith("<");
        for (AbstractInsnNode each : method.instructions.toArray()) {
            if (each instanceof MethodInsnNode call) {
                weaveCall(type, method, call);
            } else if (each instanceof InvokeDynamicInsnNode dynamic) {
                weaveReferences(dynamic);
            } else if (each.getOpcode() == Opcodes.MONITORENTER) {
                method.instructions.set(each, monitor("enter"));
            } else if (each.getOpcode() == Opcodes.MONITOREXIT) {
                method.instructions.set(each, monitor("exit"));
            } else if (hasPoints && each instanceof FieldInsnNode) {
                method.instructions.insertBefore(each,
                    new MethodInsnNode(Opcodes.INVOKESTATIC, HookTable.STALLS, "point", "()V", false));
            }
        }
        weaveHandlers(method);
        if ((method.access & Opcodes.ACC_SYNCHRONIZED) != 0) {
            boolean isStatic = (method.access & Opcodes.ACC_STATIC) != 0;
            method.access &= ~Opcodes.ACC_SYNCHRONIZED;
            surround(method, isStatic ? new Object[0] : new Object[] {type.name},
                () -> onLock(type, isStatic, "enter"), () -> onLock(type, isStatic, "exit"));
        } else if (method.name.equals("<clinit>")) {
            surround(method, new Object[0], () -> call("initializerBegins", type), () -> call("initializerEnds"));
        }
    }

    private static void weaveCall(ClassNode type, MethodNode method, MethodInsnNode call) {
        String[] hook = HookTable.method(call.owner, call.name, call.desc);
        if (hook != null) {
            call.desc = call.getOpcode() == Opcodes.INVOKESTATIC ? call.desc : withReceiver(call.owner, call.desc);
            call.setOpcode(Opcodes.INVOKESTATIC);
            call.owner = hook[0];
            call.name = hook[1];
            call.itf = false;
            return;
        }
        if (HookTable.isScratch(type.name, call.owner, call.name, call.desc)) {
            call.owner = HookTable.SCRATCH;
            return;
        }
        String argument = HookTable.argument(call.owner, call.name, call.desc);
        if (argument != null) {
            method.instructions.insertBefore(call,
                new MethodInsnNode(Opcodes.INVOKESTATIC, HookTable.HOOKS, argument, "()J", false));
            call.desc = "(J)V";
            return;
        }
        String onMonitor = call.owner.equals("java/lang/Object") ? monitorMethod(call.name) : null;
        if (onMonitor != null) {
            call.desc = withReceiver(call.owner, call.desc);
            call.setOpcode(Opcodes.INVOKESTATIC);
            call.owner = HookTable.MONITORS;
            call.name = onMonitor;
            return;
        }
        if (HookTable.leaves(call.owner, call.name, call.desc)) {
            InsnList before = new InsnList();
            before.add(new LdcInsnNode(call.owner.replace('/', '.') + "." + call.name + call.desc + ", which "
                + type.name.replace('/', '.') + "." + method.name + " calls"));
            before.add(new MethodInsnNode(Opcodes.INVOKESTATIC, HookTable.HOOKS, "unhooked", "(Ljava/lang/String;)V", false));
            method.instructions.insertBefore(call, before);
        }
    }

    private static String monitorMethod(String name) {
        return switch (name) {
            case "wait" -> "await";
            case "notify" -> "signal";
            case "notifyAll" -> "signalAll";
            default -> null;
        };
    }

    private static String withReceiver(String owner, String descriptor) {
        return "(L" + owner + ";" + descriptor.substring(1);
    }

    private static MethodInsnNode monitor(String method) {
        return new MethodInsnNode(Opcodes.INVOKESTATIC, HookTable.MONITORS, method, OBJECT_ARGUMENT, false);
    }

    /** Replaces references to methods, e.g. {@code System::nanoTime}. */
    private static void weaveReferences(InvokeDynamicInsnNode dynamic) {
        for (int i = 0; i < dynamic.bsmArgs.length; i++) {
            if (dynamic.bsmArgs[i] instanceof Handle handle) {
                String[] hook = HookTable.method(handle.getOwner(), handle.getName(), handle.getDesc());
                if (hook != null) {
                    String descriptor = handle.getTag() == Opcodes.H_INVOKESTATIC
                        ? handle.getDesc() : withReceiver(handle.getOwner(), handle.getDesc());
                    dynamic.bsmArgs[i] = new Handle(Opcodes.H_INVOKESTATIC, hook[0], hook[1], descriptor, false);
                }
            }
        }
    }

    /**
     * Lets each handler that catches everything call {@code Hooks.caught} first.
     *
     * <p>The compiler lets the handler at the end of a {@code synchronized} block cover itself. The call must not be covered: its
     * error would come back to the handler for ever.
     */
    private static void weaveHandlers(MethodNode method) {
        Map<LabelNode, LabelNode> afterCalls = new HashMap<>();
        for (TryCatchBlockNode block : List.copyOf(method.tryCatchBlocks)) {
            if (block.type != null && !CATCH_ALL.contains(block.type)) {
                continue;
            }
            LabelNode after = afterCalls.computeIfAbsent(block.handler, handler -> insertCaught(method, handler));
            int handler = method.instructions.indexOf(block.handler);
            if (method.instructions.indexOf(block.start) <= handler && handler < method.instructions.indexOf(block.end)) {
                if (block.start != block.handler) {
                    method.tryCatchBlocks.add(method.tryCatchBlocks.indexOf(block),
                        new TryCatchBlockNode(block.start, block.handler, block.handler, block.type));
                }
                block.start = after;
            }
        }
        method.tryCatchBlocks.removeIf(block ->
            method.instructions.indexOf(block.start) >= method.instructions.indexOf(block.end));
    }

    /** Inserts the call at the beginning of a handler; returns a label after it. */
    private static LabelNode insertCaught(MethodNode method, LabelNode handler) {
        AbstractInsnNode first = handler;
        while (first instanceof LabelNode || first instanceof FrameNode || first instanceof LineNumberNode) {
            first = first.getNext();
        }
        LabelNode after = new LabelNode();
        InsnList check = new InsnList();
        check.add(new InsnNode(Opcodes.DUP));
        check.add(new MethodInsnNode(Opcodes.INVOKESTATIC, HookTable.HOOKS, "caught", "(L" + THROWABLE + ";)V", false));
        check.add(after);
        method.instructions.insertBefore(first, check);
        return after;
    }

    /**
     * Puts code before the body of a method, and other code after it, also if the body ends by an exception.
     *
     * @param locals the types of the local variables that the code needs
     */
    private static void surround(MethodNode method, Object[] locals, Supplier<InsnList> before, Supplier<InsnList> after) {
        LabelNode begin = new LabelNode();
        LabelNode end = new LabelNode();
        for (AbstractInsnNode each : method.instructions.toArray()) {
            int opcode = each.getOpcode();
            if (opcode >= Opcodes.IRETURN && opcode <= Opcodes.RETURN) {
                method.instructions.insertBefore(each, after.get());
            }
        }
        InsnList enter = before.get();
        enter.add(begin);
        method.instructions.insert(enter);
        InsnList leave = new InsnList();
        leave.add(end);
        leave.add(new FrameNode(Opcodes.F_NEW, locals.length, locals, 1, new Object[] {THROWABLE}));
        leave.add(after.get());
        leave.add(new InsnNode(Opcodes.ATHROW));
        method.instructions.add(leave);
        method.tryCatchBlocks.add(new TryCatchBlockNode(begin, end, end, null));
    }

    /** Returns a call of a hook with the name of a class. */
    static InsnList call(String hook, ClassNode type) {
        InsnList made = new InsnList();
        made.add(new LdcInsnNode(type.name.replace('/', '.')));
        made.add(new MethodInsnNode(Opcodes.INVOKESTATIC, HookTable.HOOKS, hook, "(Ljava/lang/String;)V", false));
        return made;
    }

    private static InsnList call(String hook) {
        InsnList made = new InsnList();
        made.add(new MethodInsnNode(Opcodes.INVOKESTATIC, HookTable.HOOKS, hook, "()V", false));
        return made;
    }

    private static InsnList onLock(ClassNode type, boolean isStatic, String what) {
        InsnList made = new InsnList();
        made.add(isStatic ? new LdcInsnNode(Type.getObjectType(type.name)) : new VarInsnNode(Opcodes.ALOAD, 0));
        made.add(monitor(what));
        return made;
    }
}
