package io.labrys.simjvm.weave;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.MalformedURLException;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.Map;

/**
 * Loads the classes of the simulated processes, and weaves each one.
 *
 * <p>They come from the jars of the program, and from the package {@code inside} of the simulator or of such a jar. The copies of
 * types of the JDK come from the JDK itself. So no class of the JDK is stored anywhere. The copies are always those of JDK 17: its
 * classes run on later JVMs too, and all JVMs then have the same schedule.
 */
public final class WeavingLoader extends URLClassLoader {
    private static final String OWN = "io.labrys.simjvm.";
    private static final String INSIDE = OWN + "inside.";
    private static final String COPIES = HookTable.COPIES.replace('/', '.');
    private static final int COPIED_VERSION = 17;

    static {
        registerAsParallelCapable();
    }

    private final Path jdkClasses;

    /**
     * Makes a loader.
     *
     * @param program the jars of the program, as in a class path
     * @param jdk the home of a JDK 17; null if it is the one that runs this
     * @throws IOException the JDK has no classes to read, or a file of the program with names cannot be read
     */
    public WeavingLoader(String program, Path jdk) throws IOException {
        super(Arrays.stream(program.split(File.pathSeparator)).map(WeavingLoader::url).toArray(URL[]::new),
            WeavingLoader.class.getClassLoader());
        if (jdk == null && Runtime.version().feature() != COPIED_VERSION) {
            throw new IOException("expected Java " + COPIED_VERSION + ", found Java " + Runtime.version().feature()
                + "; name the home of a JDK " + COPIED_VERSION + " as the second argument");
        }
        URI runtime = URI.create("jrt:/");
        FileSystem classes = jdk == null
            ? FileSystems.getFileSystem(runtime) : FileSystems.newFileSystem(runtime, Map.of("java.home", jdk.toString()));
        jdkClasses = classes.getPath("/modules/java.base");
        for (URL table : Collections.list(findResources(HookTable.OF_PROGRAM))) {
            try (BufferedReader lines = new BufferedReader(new InputStreamReader(table.openStream(), StandardCharsets.UTF_8))) {
                HookTable.read(lines.lines().toList());
            }
        }
    }

    private static URL url(String jar) {
        try {
            return Path.of(jar).toUri().toURL();
        } catch (MalformedURLException e) {
            throw new IllegalArgumentException(e);
        }
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        synchronized (getClassLoadingLock(name)) {
            Class<?> found = findLoadedClass(name);
            if (found == null) {
                byte[] original = original(name);
                if (original == null) {
                    return super.loadClass(name, resolve);
                }
                byte[] woven = Weaver.woven(original);
                found = defineClass(name, woven, 0, woven.length);
            }
            if (resolve) {
                resolveClass(found);
            }
            return found;
        }
    }

    /** Returns the bytes of a class that this loader weaves; null for a class that it leaves to its parent. */
    private byte[] original(String name) {
        String file = name.replace('.', '/') + ".class";
        try {
            if (name.startsWith(COPIES)) {
                return Files.readAllBytes(jdkClasses.resolve(file.substring(HookTable.COPIES.length())));
            }
            if (name.startsWith("java.") || name.startsWith(OWN) && !name.startsWith(INSIDE)) {
                return null;
            }
            URL place = name.startsWith(INSIDE) ? getResource(file) : findResource(file);
            if (place == null) {
                return null;
            }
            try (InputStream in = place.openStream()) {
                return in.readAllBytes();
            }
        } catch (IOException e) {
            throw new IllegalStateException("the class " + name + " cannot be read", e);
        }
    }
}
