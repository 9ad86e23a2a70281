package io.labrys.mends;

import java.util.List;
import java.util.ServiceLoader;
import java.util.function.Consumer;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.tree.ClassNode;

/**
 * A change of one class, which mends a finding or a part of it.
 *
 * @param finding the name of the program and the number of the finding, e.g. my-store-1
 * @param type the internal name of the class that it changes
 * @param change makes the change
 * @param called the names of the classes of this package that the changed class needs
 */
public record Mend(String finding, String type, Consumer<ClassNode> change, List<String> called) {
    /** Makes a mend. */
    public Mend(String finding, String type, Consumer<ClassNode> change, String... called) {
        this(finding, type, change, List.of(called));
    }

    /** Returns the mends of a finding, of all programs that the class path has. */
    static List<Mend> of(String finding) {
        List<Mend> found = ServiceLoader.load(Mends.class).stream().flatMap(program -> program.get().all().stream())
            .filter(mend -> mend.finding.equals(finding)).toList();
        if (found.isEmpty()) {
            throw new IllegalArgumentException("expected a finding with a mend, e.g. my-store-1, got " + finding);
        }
        return found;
    }

    /** Returns the bytes of the changed class. */
    byte[] mended(byte[] original) {
        ClassNode node = new ClassNode();
        new ClassReader(original).accept(node, 0);
        change.accept(node);
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        node.accept(writer);
        return writer.toByteArray();
    }

    @Override
    public String toString() {
        return finding + " in " + type;
    }
}
