import java.io.IOException;
import java.io.InputStream;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import javax.tools.ToolProvider;

/**
 * Writes a copy of a jar, or of a folder of jars, with the classes of some source files compiled again.
 *
 * <p>All other classes keep their bytes. Each entry keeps its time, so the same jar and the same classes give the same bytes.
 */
public final class Recompile {
    // `--release 8` would hide sun.misc and sun.nio.ch, which some classes use.
    private static final List<String> LIKE_THE_RELEASE = List.of("-source", "8", "-target", "8", "-g", "-proc:none", "-Xlint:-options");
    private static final String CLASS = ".class";

    private Recompile() {}

    /** Writes the copy. The arguments: the jar or the folder, the folder of the copy, and that of the source files. */
    public static void main(String[] arguments) throws IOException {
        Path from = Path.of(arguments[0]);
        List<Path> jars = Files.isDirectory(from) ? jarsOf(from) : List.of(from);
        List<Path> sources = below(Path.of(arguments[2]), ".java");
        Path compiled = Files.createTempDirectory(Path.of("."), "compiled");
        compile(jars, sources, compiled);
        Map<String, byte[]> classes = new TreeMap<>();
        for (Path each : below(compiled, CLASS)) {
            classes.put(compiled.relativize(each).toString(), Files.readAllBytes(each));
        }
        Path copy = Files.createDirectories(Path.of(arguments[1]));
        for (Path jar : jars) {
            write(jar, copy.resolve(jar.getFileName()), classes);
        }
        if (!classes.isEmpty()) {
            throw new IllegalStateException("expected the classes " + classes.keySet() + " in " + from + ", which lacks them");
        }
    }

    private static List<Path> jarsOf(Path folder) throws IOException {
        List<Path> jars = new ArrayList<>();
        try (DirectoryStream<Path> found = Files.newDirectoryStream(folder, "*.jar")) {
            found.forEach(jars::add);
        }
        return jars.stream().sorted().toList();
    }

    private static List<Path> below(Path folder, String ending) throws IOException {
        try (Stream<Path> paths = Files.walk(folder)) {
            return paths.filter(path -> path.toString().endsWith(ending)).sorted().toList();
        }
    }

    private static void compile(List<Path> jars, List<Path> sources, Path into) {
        List<String> arguments = new ArrayList<>(LIKE_THE_RELEASE);
        arguments.addAll(List.of("-cp", String.join(":", jars.stream().map(Path::toString).toList()), "-d", into.toString()));
        sources.forEach(source -> arguments.add(source.toString()));
        if (ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new)) != 0) {
            throw new IllegalStateException("expected sources that compile against " + jars + ", got " + sources);
        }
    }

    /** Writes the copy of a jar, and takes those classes whose source file it has a class of. Without any, it keeps its bytes. */
    private static void write(Path jar, Path copy, Map<String, byte[]> classes) throws IOException {
        try (JarFile from = new JarFile(jar.toFile())) {
            Map<String, byte[]> here = new TreeMap<>(classes);
            here.keySet().removeIf(name -> from.getEntry(name.replaceFirst("(\\$.*)?\\.class$", CLASS)) == null);
            if (here.isEmpty()) {
                Files.copy(jar, copy);
                return;
            }
            classes.keySet().removeAll(here.keySet());
            try (ZipOutputStream to = new ZipOutputStream(Files.newOutputStream(copy))) {
                ZipEntry last = null;
                for (JarEntry entry : (Iterable<JarEntry>) () -> from.entries().asIterator()) {
                    byte[] changed = here.remove(entry.getName());
                    try (InputStream in = from.getInputStream(entry)) {
                        put(to, entry, entry.getName(), changed == null ? in.readAllBytes() : changed);
                    }
                    last = entry;
                }
                for (Map.Entry<String, byte[]> more : here.entrySet()) {
                    put(to, last, more.getKey(), more.getValue());
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
