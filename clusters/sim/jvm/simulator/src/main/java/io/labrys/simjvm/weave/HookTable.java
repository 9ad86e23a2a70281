package io.labrys.simjvm.weave;

import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Which names of the JDK and of libraries the code of a process has replaced, and by what. This is the only such table. A jar of the
 * program adds names of its libraries with a file {@link #OF_PROGRAM}; see {@link #read}.
 *
 * <p>A name of a type or a method is as in a class file.
 */
final class HookTable {
    private static final String RUN = "io/labrys/simjvm/run/";
    private static final String INSIDE = "io/labrys/simjvm/inside/";
    /** The name of the files with which jars of a program add to this table. */
    static final String OF_PROGRAM = "META-INF/labrys/simulated";
    /** The package of the copies of types of the JDK. */
    static final String COPIES = "io/labrys/simjvm/copied/";
    /** The class with the hooks. */
    static final String HOOKS = RUN + "Hooks";
    /** The class that lets threads stall. */
    static final String STALLS = RUN + "Stalls";
    /** The class with the large buffers. */
    static final String SCRATCH = RUN + "Scratch";
    /** The class with the monitors. */
    static final String MONITORS = RUN + "Monitors";

    /** Types that another type replaces. */
    private static final Map<String, String> TYPES = Map.ofEntries(
        Map.entry("java/lang/Thread", RUN + "SimThread"),
        Map.entry("java/lang/Thread$UncaughtExceptionHandler", RUN + "SimThread$UncaughtExceptionHandler"),
        Map.entry("java/lang/ThreadLocal", RUN + "SimThreadLocal"),
        Map.entry("java/util/concurrent/locks/LockSupport", RUN + "Parking"),
        Map.entry("java/util/concurrent/ThreadLocalRandom", RUN + "SimRandom"),
        Map.entry("java/io/FileOutputStream", RUN + "SimFileOutputStream"),
        Map.entry("java/io/FileWriter", RUN + "SimFileWriter"),
        Map.entry("java/io/RandomAccessFile", RUN + "SimRandomAccessFile"),
        Map.entry("java/net/Socket", RUN + "SimSocket"),
        Map.entry("java/net/ServerSocket", RUN + "SimServerSocket"),
        // The common pool of a machine with two processors has one thread, and CompletableFuture does not use such a pool.
        Map.entry("java/util/concurrent/ForkJoinPool", INSIDE + "ForkJoinPool"),
        Map.entry("java/util/concurrent/ForkJoinPool$ManagedBlocker", INSIDE + "ForkJoinPool$ManagedBlocker"),
        Map.entry("java/util/concurrent/ForkJoinTask", INSIDE + "ForkJoinTask"),
        Map.entry("java/util/concurrent/ForkJoinWorkerThread", INSIDE + "ForkJoinWorkerThread"));
    /** Types of the program that another type replaces. */
    private static final Map<String, String> TYPES_OF_PROGRAM = new HashMap<>();

    /**
     * Types of java.util.concurrent that stay those of the JDK: they never block, or they are interfaces that name no type that
     * is replaced. A type whose name begins with one of {@link #STAYING_FAMILIES} stays too.
     */
    private static final Set<String> STAYING = Set.of("TimeUnit", "Callable", "Executor", "ExecutorService",
        "ScheduledExecutorService", "Future", "RunnableFuture", "ScheduledFuture", "RunnableScheduledFuture", "Delayed",
        "BlockingQueue", "BlockingDeque", "TransferQueue", "CompletionService", "ConcurrentMap", "ConcurrentNavigableMap",
        "locks/Lock", "locks/Condition", "locks/ReadWriteLock");
    private static final String[] STAYING_FAMILIES =
        {"atomic/", "ConcurrentHashMap", "ConcurrentSkipList", "ConcurrentLinked", "CopyOnWrite", "TimeUnit$", "Flow"};
    private static final String CONCURRENT = "java/util/concurrent/";
    /** Types outside of java.util.concurrent that are copied. */
    private static final Set<String> COPIED =
        Set.of("java/util/Timer", "java/util/TimerTask", "java/util/TimerThread", "java/util/TaskQueue", "java/util/Timer$1",
            "java/util/Timer$ThreadReaper");

    /** Methods that a static method replaces; its type and its name, with a dot between. */
    private static final Map<String, String> METHODS = new HashMap<>();

    /** Constructors that get another argument, which a method of {@link #HOOKS} returns; its name. */
    private static final Map<String, String> SEEDED = Map.of(
        "java/util/Random.<init>()V", "seed", "java/util/SplittableRandom.<init>()V", "seed", "java/util/Date.<init>()V",
        "currentTimeMillis");

    /** Types whose methods leave the simulation. The guard ends a run that calls one. */
    private static final Set<String> FORBIDDEN = Set.of("javax/net/SocketFactory", "javax/net/ServerSocketFactory", "java/net/DatagramSocket",
        "java/nio/channels/SocketChannel", "java/nio/channels/ServerSocketChannel", "java/nio/channels/DatagramChannel",
        "java/nio/channels/AsynchronousFileChannel", "java/nio/channels/Selector", "java/lang/ProcessBuilder",
        "java/lang/Thread$Builder", "java/security/SecureRandom");
    /**
     * Methods that no hook follows, some with their descriptors: those that write files, read the time of the machine, or draw. The
     * guard ends a run that calls one.
     */
    private static final Set<String> FORBIDDEN_METHODS = Set.of("java/util/GregorianCalendar.<init>()V",
        "java/util/random/RandomGenerator.getDefault", "java/util/random/RandomGenerator.of",
        "java/util/random/RandomGeneratorFactory.create()Ljava/util/random/RandomGenerator;",
        "java/nio/file/Files.createTempDirectory", "java/io/File.createNewFile", "java/io/File.createTempFile",
        "java/nio/channels/FileChannel.transferFrom", "java/nio/file/Files.copy", "java/nio/file/Files.createFile",
        "java/nio/file/Files.createLink", "java/nio/file/Files.createSymbolicLink", "java/nio/file/Files.createTempFile",
        "java/nio/file/Files.newBufferedWriter", "java/nio/file/Files.newByteChannel", "java/nio/file/Files.newOutputStream",
        "java/nio/file/Files.write", "java/nio/file/Files.writeString");

    /**
     * Packages of libraries whose static fields have nothing but caches and constants. They keep them from run to run. A cache of
     * generated classes would grow with each run otherwise.
     */
    private static final Set<String> KEEPING = new HashSet<>(Set.of("com/alibaba/fastjson/", "com/google/", "io/netty/",
        "io/opentelemetry/", "org/apache/commons/", "org/slf4j/"));
    /** Types whose objects never change. */
    private static final Set<String> CONSTANT = Set.of("java/lang/String", "java/lang/Class", "java/lang/Boolean",
        "java/lang/Integer", "java/lang/Long", "java/lang/Double", "java/lang/invoke/VarHandle", "java/lang/invoke/MethodHandle",
        "java/nio/charset/Charset", "java/time/format/DateTimeFormatter", "java/time/Duration", "java/util/regex/Pattern",
        "jdk/internal/misc/Unsafe", "org/slf4j/Logger");

    /** Types of the program whose buffers are of {@link #SCRATCH}, as they only read what they have written. */
    private static final Set<String> SCRATCHING = new HashSet<>();

    static {
        hook("java/lang/System.currentTimeMillis()J", "currentTimeMillis");
        hook("java/lang/System.nanoTime()J", "nanoTime");
        hook("java/time/Instant.now()Ljava/time/Instant;", "instant");
        String clock = "Ljava/time/Clock;";
        for (String method : new String[] {"systemUTC()", "systemDefaultZone()", "system(Ljava/time/ZoneId;)",
            "tickMillis(Ljava/time/ZoneId;)", "tickSeconds(Ljava/time/ZoneId;)", "tickMinutes(Ljava/time/ZoneId;)"}) {
            METHODS.put("java/time/Clock." + method + clock, RUN + "SimClock." + method.substring(0, method.indexOf('(')));
        }
        METHODS.put("java/time/InstantSource.system()Ljava/time/InstantSource;", RUN + "SimClock.source");
        for (String given : new String[] {"", "Ljava/util/TimeZone;", "Ljava/util/Locale;", "Ljava/util/TimeZone;Ljava/util/Locale;"}) {
            hook("java/util/Calendar.getInstance(" + given + ")Ljava/util/Calendar;", "calendar");
        }
        hook("java/lang/management/RuntimeMXBean.getUptime()J", "uptime");
        hook("java/lang/management/RuntimeMXBean.getStartTime()J", "startTime");
        hook("java/lang/management/RuntimeMXBean.getName()Ljava/lang/String;", "processName");
        hook("java/lang/management/RuntimeMXBean.getPid()J", "pid");
        hook("java/lang/ProcessHandle.pid()J", "pid");
        hook("java/lang/Runtime.totalMemory()J", "totalMemory");
        hook("java/lang/Runtime.freeMemory()J", "freeMemory");
        hook("java/util/concurrent/TimeUnit.sleep(J)V", "sleep");
        hook("java/lang/Math.random()D", "random");
        hook("java/util/UUID.randomUUID()Ljava/util/UUID;", "randomUuid");
        hook("java/util/Collections.shuffle(Ljava/util/List;)V", "shuffle");
        hook("java/lang/System.exit(I)V", "exit");
        hook("java/lang/Runtime.halt(I)V", "halt");
        hook("java/lang/Runtime.addShutdownHook(L" + RUN + "SimThread;)V", "addShutdownHook");
        hook("java/lang/Runtime.availableProcessors()I", "availableProcessors");
        hook("java/io/File.list()[Ljava/lang/String;", "list");
        hook("java/io/File.listFiles()[Ljava/io/File;", "listFiles");
        hook("java/io/File.listFiles(Ljava/io/FileFilter;)[Ljava/io/File;", "listFiles");
        hook("java/io/File.listFiles(Ljava/io/FilenameFilter;)[Ljava/io/File;", "listFiles");
        hook("java/io/File.lastModified()J", "lastModified");
        hook("java/io/File.getTotalSpace()J", "totalSpace");
        hook("java/io/File.getFreeSpace()J", "freeSpace");
        hook("java/io/File.getUsableSpace()J", "freeSpace");
        hook("java/lang/ref/Cleaner.register(Ljava/lang/Object;Ljava/lang/Runnable;)Ljava/lang/ref/Cleaner$Cleanable;", "register");
        METHODS.put(COPIES + "java/util/concurrent/CompletableFuture$Delayer.delay(Ljava/lang/Runnable;J"
            + "Ljava/util/concurrent/TimeUnit;)Ljava/util/concurrent/ScheduledFuture;", INSIDE + "Delays.delay");
        hook("java/io/File.delete()Z", "delete");
        hook("java/io/File.renameTo(Ljava/io/File;)Z", "renameTo");
        hook("java/io/FileDescriptor.sync()V", "sync");
        hook("java/nio/file/Files.delete(Ljava/nio/file/Path;)V", "delete");
        hook("java/nio/file/Files.deleteIfExists(Ljava/nio/file/Path;)Z", "deleteIfExists");
        hook("java/nio/file/Files.move(Ljava/nio/file/Path;Ljava/nio/file/Path;[Ljava/nio/file/CopyOption;)Ljava/nio/file/Path;",
            "move");
        METHODS.put(RUN + "SimRandomAccessFile.getChannel()Ljava/nio/channels/FileChannel;", RUN + "SimRandomAccessFile.channel");
        hook("java/nio/channels/FileChannel.open(Ljava/nio/file/Path;[Ljava/nio/file/OpenOption;)"
            + "Ljava/nio/channels/FileChannel;", "open");
        hook("java/nio/channels/FileChannel.write(Ljava/nio/ByteBuffer;)I", "write");
        hook("java/nio/channels/FileChannel.write(Ljava/nio/ByteBuffer;J)I", "write");
        hook("java/nio/channels/FileChannel.truncate(J)Ljava/nio/channels/FileChannel;", "truncate");
        hook("java/nio/channels/FileChannel.force(Z)V", "force");
        for (String buffer : new String[] {"java/nio/ByteBuffer", "java/nio/MappedByteBuffer"}) {
            for (String given : new String[] {"[BII", "[B", "Ljava/nio/ByteBuffer;"}) {
                hook(buffer + ".put(" + given + ")Ljava/nio/ByteBuffer;", "put");
            }
            for (String index : new String[] {"", "I"}) {
                hook(buffer + ".put(" + index + "B)Ljava/nio/ByteBuffer;", "put");
                hook(buffer + ".putInt(" + index + "I)Ljava/nio/ByteBuffer;", "putInt");
                hook(buffer + ".putLong(" + index + "J)Ljava/nio/ByteBuffer;", "putLong");
            }
        }
        hook("java/nio/MappedByteBuffer.force()Ljava/nio/MappedByteBuffer;", "force");
        hook("java/nio/channels/FileChannel.map(Ljava/nio/channels/FileChannel$MapMode;JJ)Ljava/nio/MappedByteBuffer;", "map");
    }

    private HookTable() {}

    /**
     * Reads what a jar of the program adds. A line is empty, begins with {@code #}, or has one of these forms:
     *
     * <ul>
     *   <li>{@code type NAME BY}: the type {@code BY} replaces the type {@code NAME}.
     *   <li>{@code keeps PACKAGE/}: types of this package keep their static fields from run to run.
     *   <li>{@code scratch NAME}: this type only reads of a large buffer what it has written.
     * </ul>
     *
     * @throws IOException a line has another form
     */
    static void read(Iterable<String> lines) throws IOException {
        for (String line : lines) {
            String[] words = line.isBlank() || line.startsWith("#") ? new String[] {""} : line.split(" ");
            switch (words[0] + words.length) {
                case "1" -> { }
                case "type3" -> TYPES_OF_PROGRAM.put(words[1], words[2]);
                case "keeps2" -> KEEPING.add(words[1]);
                case "scratch2" -> SCRATCHING.add(words[1]);
                default -> throw new IOException("expected a line of " + OF_PROGRAM + ", found: " + line);
            }
        }
    }

    private static void hook(String method, String by) {
        METHODS.put(method, HOOKS + "." + by);
    }

    /** Returns the name of the type that replaces a type; the same name if none does. */
    static String type(String name) {
        String replaced = TYPES.getOrDefault(name, TYPES_OF_PROGRAM.get(name));
        if (replaced != null) {
            return replaced;
        }
        return isCopied(name) ? COPIES + name : name;
    }

    /** Returns whether processes have a copy of a type of the JDK. */
    private static boolean isCopied(String name) {
        if (COPIED.contains(name)) {
            return true;
        }
        if (!name.startsWith(CONCURRENT)) {
            return false;
        }
        String rest = name.substring(CONCURRENT.length());
        if (STAYING.contains(rest) || rest.endsWith("Exception")) {
            return false;
        }
        for (String family : STAYING_FAMILIES) {
            if (rest.startsWith(family)) {
                return false;
            }
        }
        return true;
    }

    /** Returns the type and the name of the static method that replaces a method; null if none does. */
    static String[] method(String owner, String name, String descriptor) {
        String found = METHODS.get(owner + "." + name + descriptor);
        return found == null ? null : found.split("\\.");
    }

    /** Returns whether a call of a type allocates a buffer that {@link #SCRATCH} has. */
    static boolean isScratch(String caller, String owner, String name, String descriptor) {
        return SCRATCHING.contains(caller)
            && (owner + "." + name + descriptor).equals("java/nio/ByteBuffer.allocate(I)Ljava/nio/ByteBuffer;");
    }

    /** Returns the method of {@link #HOOKS} whose result a constructor gets as an argument; null if there is none. */
    static String argument(String owner, String name, String descriptor) {
        return SEEDED.get(owner + "." + name + descriptor);
    }

    /** Returns whether threads can stall in the code of a class: in that of the program, without libraries that have caches. */
    static boolean hasPoints(String type) {
        return !type.startsWith(COPIES) && !type.startsWith(INSIDE) && !keepsStatics(type);
    }

    /** Returns whether a class keeps its static fields from run to run. */
    static boolean keepsStatics(String type) {
        for (String prefix : KEEPING) {
            if (type.startsWith(prefix)) {
                return true;
            }
        }
        return false;
    }

    /** Returns whether the objects of a type never change. */
    static boolean isConstant(String type) {
        return CONSTANT.contains(type);
    }

    /** Returns whether a call, with renamed types, leaves the simulation. */
    static boolean leaves(String owner, String name, String descriptor) {
        return method(owner, name, descriptor) == null && isForbidden(owner, name, descriptor);
    }

    private static boolean isForbidden(String owner, String name, String descriptor) {
        String method = owner + "." + name;
        if (FORBIDDEN.contains(owner) || FORBIDDEN_METHODS.contains(method) || FORBIDDEN_METHODS.contains(method + descriptor)
            || name.equals("parallelStream") || name.equals("now") && owner.startsWith("java/time/")) {
            return true;
        }
        // A method of the JDK takes no thread, lock or future of the simulation.
        boolean isOfJdk = owner.startsWith("java/") || owner.startsWith("javax/") || owner.startsWith("jdk/")
            || owner.startsWith("sun/");
        return isOfJdk && !owner.startsWith("java/lang/invoke/") && descriptor.contains("Lio/labrys/simjvm/");
    }
}
