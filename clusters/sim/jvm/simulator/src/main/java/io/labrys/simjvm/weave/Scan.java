package io.labrys.simjvm.weave;

import java.io.IOException;
import java.io.InputStream;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.Handle;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.InvokeDynamicInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;

/**
 * Lists the calls of a program that would end a run, because they leave the simulation. A run meets only those that it carries out.
 *
 * <p>The arguments are the jar of the program, and the first parts of the names of classes, e.g. {@code io.openmessaging.}. Each line has
 * the method and what it calls.
 */
public final class Scan {
    private static final String CLASS = ".class";

    private Scan() {}

    /** Prints the list, sorted. */
    public static void main(String[] arguments) throws IOException {
        if (arguments.length < 2) {
            System.err.println("scan: expected the jar of the program, and the first parts of the names of its classes");
            System.exit(64);
        }
        List<String> parts = List.of(arguments).subList(1, arguments.length).stream().map(part -> part.replace('.', '/')).toList();
        Set<String> found = new TreeSet<>();
        try (JarFile jar = new JarFile(arguments[0])) {
            for (JarEntry entry : Collections.list(jar.entries())) {
                if (entry.getName().endsWith(CLASS) && parts.stream().anyMatch(entry.getName()::startsWith)) {
                    try (InputStream in = jar.getInputStream(entry)) {
                        scan(Weaver.renamed(in.readAllBytes()), found);
                    }
                }
            }
        }
        found.forEach(System.out::println);
    }

    private static void scan(ClassNode type, Set<String> found) {
        for (MethodNode method : type.methods) {
            String where = type.name.replace('/', '.') + "." + method.name + " calls ";
            for (AbstractInsnNode each : method.instructions) {
                if (each instanceof MethodInsnNode call) {
                    add(where, call.owner, call.name, call.desc, found);
                } else if (each instanceof InvokeDynamicInsnNode dynamic) {
                    for (Object argument : dynamic.bsmArgs) {
                        if (argument instanceof Handle handle) {
                            add(where, handle.getOwner(), handle.getName(), handle.getDesc(), found);
                        }
                    }
                }
            }
        }
    }

    private static void add(String where, String owner, String name, String descriptor, Set<String> found) {
        if (HookTable.leaves(owner, name, descriptor)) {
            found.add(where + owner.replace('/', '.') + "." + name);
        }
    }
}
