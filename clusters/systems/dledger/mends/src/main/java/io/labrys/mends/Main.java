package io.labrys.mends;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/**
 * Writes a copy of a jar in which some defects of DLedger are mended.
 *
 * <p>All other classes keep their bytes. Each entry keeps its time, so the same jar and the same mends give the same bytes.
 */
public final class Main {
    private Main() {}

    /** Writes the copy. The arguments: the jar, the path of the copy, and the numbers of the findings. */
    public static void main(String[] arguments) throws IOException {
        if (arguments.length < 3) {
            System.err.println("mends: expected a jar, the path of the copy, and numbers of findings");
            System.exit(64);
        }
        List<Mend> mends = new ArrayList<>();
        for (String number : List.of(arguments).subList(2, arguments.length)) {
            mends.addAll(Mend.of(number));
        }
        Path copy = Path.of(arguments[1]);
        if (copy.getParent() != null) {
            Files.createDirectories(copy.getParent());
        }
        write(Path.of(arguments[0]), copy, mends);
    }

    private static void write(Path jar, Path copy, List<Mend> mends) throws IOException {
        Set<Mend> lacking = new HashSet<>(mends);
        try (JarFile from = new JarFile(jar.toFile()); ZipOutputStream to = new ZipOutputStream(Files.newOutputStream(copy))) {
            ZipEntry last = null;
            for (JarEntry entry : (Iterable<JarEntry>) () -> from.entries().asIterator()) {
                byte[] data;
                try (InputStream in = from.getInputStream(entry)) {
                    data = in.readAllBytes();
                }
                for (Mend mend : mends) {
                    if (entry.getName().equals(mend.type() + ".class")) {
                        data = mend.mended(data);
                        lacking.remove(mend);
                    }
                }
                put(to, entry, entry.getName(), data);
                last = entry;
            }
            for (Mend mend : mends) {
                for (Class<?> called : mend.called()) {
                    String name = called.getName().replace('.', '/') + ".class";
                    try (InputStream in = Main.class.getResourceAsStream("/" + name)) {
                        put(to, last, name, in.readAllBytes());
                    }
                }
            }
        }
        if (!lacking.isEmpty()) {
            throw new IllegalStateException("expected the classes of " + lacking + " in " + jar + ", which lacks them");
        }
    }

    /** Writes an entry with the time of another one. */
    private static void put(ZipOutputStream to, ZipEntry like, String name, byte[] data) throws IOException {
        ZipEntry entry = new ZipEntry(name);
        entry.setTimeLocal(like.getTimeLocal());
        to.putNextEntry(entry);
        to.write(data);
        to.closeEntry();
    }
}
