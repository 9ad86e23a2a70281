package io.labrys.mends;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.DirectoryStream;
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
 * Writes a copy of a jar, or of a folder of jars, in which some defects are mended.
 *
 * <p>All other classes keep their bytes. Each entry keeps its time, so the same jar and the same mends give the same bytes.
 */
public final class Main {
    private Main() {}

    /** Writes the copy. The arguments: the jar or the folder, the path of the copy, and the findings, e.g. my-store-1. */
    public static void main(String[] arguments) throws IOException {
        if (arguments.length < 3) {
            System.err.println("mends: expected a jar or a folder of jars, the path of the copy, and findings");
            System.exit(64);
        }
        List<Mend> mends = new ArrayList<>();
        for (String finding : List.of(arguments).subList(2, arguments.length)) {
            mends.addAll(Mend.of(finding));
        }
        Path from = Path.of(arguments[0]);
        Path copy = Path.of(arguments[1]);
        Set<Mend> done = new HashSet<>();
        if (Files.isDirectory(from)) {
            Files.createDirectories(copy);
            try (DirectoryStream<Path> jars = Files.newDirectoryStream(from, "*.jar")) {
                for (Path jar : jars) {
                    write(jar, copy.resolve(jar.getFileName()), mends, done);
                }
            }
        } else {
            if (copy.getParent() != null) {
                Files.createDirectories(copy.getParent());
            }
            write(from, copy, mends, done);
        }
        Set<Mend> lacking = new HashSet<>(mends);
        lacking.removeAll(done);
        if (!lacking.isEmpty()) {
            throw new IllegalStateException("expected the classes of " + lacking + " in " + from + ", which lacks them");
        }
    }

    /** Writes the copy of a jar, and notes which mends it has. A jar without any of the classes keeps its bytes. */
    private static void write(Path jar, Path copy, List<Mend> mends, Set<Mend> done) throws IOException {
        try (JarFile from = new JarFile(jar.toFile())) {
            List<Mend> here = mends.stream().filter(mend -> from.getEntry(mend.type() + ".class") != null).toList();
            if (here.isEmpty()) {
                Files.copy(jar, copy);
                return;
            }
            write(from, copy, here);
            done.addAll(here);
        }
    }

    private static void write(JarFile from, Path copy, List<Mend> mends) throws IOException {
        try (ZipOutputStream to = new ZipOutputStream(Files.newOutputStream(copy))) {
            ZipEntry last = null;
            for (JarEntry entry : (Iterable<JarEntry>) () -> from.entries().asIterator()) {
                byte[] data;
                try (InputStream in = from.getInputStream(entry)) {
                    data = in.readAllBytes();
                }
                for (Mend mend : mends) {
                    if (entry.getName().equals(mend.type() + ".class")) {
                        data = mend.mended(data);
                    }
                }
                put(to, entry, entry.getName(), data);
                last = entry;
            }
            for (String called : mends.stream().flatMap(mend -> mend.called().stream()).distinct().toList()) {
                String name = Code.ours(called) + ".class";
                try (InputStream in = Main.class.getResourceAsStream("/" + name)) {
                    put(to, last, name, in.readAllBytes());
                }
            }
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
