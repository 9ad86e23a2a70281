package io.labrys.simjvm.weave;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.security.ProtectionDomain;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Gives {@link java.util.Set#of} and {@link java.util.Map#of} the same order in each JVM.
 *
 * <p>The JDK draws their order from the time at which the JVM starts ({@code java.util.ImmutableCollections}: {@code SALT32L} and
 * {@code REVERSE}). The manifest names this class as an agent, so it changes the classes before {@code main}. A change of the two fields
 * alone would come too late for code that is compiled by then.
 */
public final class SetOrders {
    private static final String OWNER = "java/util/ImmutableCollections";
    private static final Map<String, Object> VALUES = Map.of("SALT32L", 0x9E37_79B9L, "REVERSE", 0);

    private SetOrders() {}

    /** Changes the classes. The JVM calls this before {@code main}. */
    public static void agentmain(String arguments, Instrumentation instrumentation) throws UnmodifiableClassException {
        ClassFileTransformer transformer = new ClassFileTransformer() {
            @Override
            public byte[] transform(ClassLoader loader, String name, Class<?> type, ProtectionDomain domain, byte[] original) {
                return name != null && name.startsWith(OWNER) ? withConstants(original) : null;
            }
        };
        List.of(Set.of(1), Set.of(1, 2, 3), Map.of(1, 1), Map.of(1, 1, 2, 2)).forEach(Object::toString); // loads the iterators
        instrumentation.addTransformer(transformer, true);
        Class<?>[] types = Arrays.stream(instrumentation.getAllLoadedClasses())
            .filter(type -> type.getName().replace('.', '/').startsWith(OWNER)).toArray(Class<?>[]::new);
        instrumentation.retransformClasses(types);
        instrumentation.removeTransformer(transformer); // it would slow down the loading of all other classes
    }

    /** Returns a class with constants in the place of the two fields. */
    private static byte[] withConstants(byte[] original) {
        ClassWriter writer = new ClassWriter(0);
        new ClassReader(original).accept(new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
                return new MethodVisitor(Opcodes.ASM9, super.visitMethod(access, name, descriptor, signature, exceptions)) {
                    @Override
                    public void visitFieldInsn(int opcode, String owner, String field, String type) {
                        if (opcode == Opcodes.GETSTATIC && owner.equals(OWNER) && VALUES.containsKey(field)) {
                            visitLdcInsn(VALUES.get(field));
                        } else {
                            super.visitFieldInsn(opcode, owner, field, type);
                        }
                    }
                };
            }
        }, 0);
        return writer.toByteArray();
    }
}
