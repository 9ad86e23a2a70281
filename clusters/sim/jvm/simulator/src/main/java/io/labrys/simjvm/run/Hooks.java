package io.labrys.simjvm.run;

import java.io.File;
import java.io.FileDescriptor;
import java.io.FileFilter;
import java.io.FilenameFilter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.RuntimeMXBean;
import java.lang.ref.Cleaner;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.CopyOption;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.Arrays;
import java.util.Calendar;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.TimeZone;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * What the code of a process calls in the place of the methods of the JDK in {@code HookTable}. A method of an object has this object
 * as its first argument.
 */
public final class Hooks {
    private static final long DISK_BYTES = 100L << 30;
    private static final long FREE_BYTES = 90L << 30;
    private static final int PROCESSORS = 2;
    private static final long PID = 1;
    private static final long MEMORY_BYTES = 512L << 20;
    private static final Consumer<MappedByteBuffer> UNMAPPING = unmapping();

    private Hooks() {}

    // ---------------------------------------------------------------------------------------------- time

    /** Returns the wall clock of the node, which faults can change. */
    public static long currentTimeMillis() {
        SimThread me = Scheduler.get().current();
        return me.initializes() ? SimProcess.EPOCH_MILLIS : me.process.wallMillis();
    }

    /** Returns the virtual time. No fault changes it. */
    public static long nanoTime() {
        return Scheduler.get().current().initializes() ? 0 : Scheduler.get().now();
    }

    /** Returns the wall clock of the node. */
    public static Instant instant() {
        return Instant.ofEpochMilli(currentTimeMillis());
    }

    /** Returns the time of the wall clock of the node as a calendar. */
    public static Calendar calendar() {
        return now(Calendar.getInstance());
    }

    public static Calendar calendar(TimeZone zone) {
        return now(Calendar.getInstance(zone));
    }

    public static Calendar calendar(Locale locale) {
        return now(Calendar.getInstance(locale));
    }

    public static Calendar calendar(TimeZone zone, Locale locale) {
        return now(Calendar.getInstance(zone, locale));
    }

    private static Calendar now(Calendar calendar) {
        calendar.setTimeInMillis(currentTimeMillis());
        return calendar;
    }

    /** Returns how long the process has run, in milliseconds. */
    public static long uptime(RuntimeMXBean ofJvm) {
        return SimProcess.current().uptimeMillis();
    }

    /** Sleeps. */
    public static void sleep(TimeUnit unit, long amount) throws InterruptedException {
        if (amount > 0) {
            SimThread.sleep(unit.toMillis(amount), (int) (unit.toNanos(amount) % Scheduler.NANOS_PER_MILLI));
        }
    }

    // ---------------------------------------------------------------------------------------------- randomness

    /** Returns a seed from the random numbers of the process. */
    public static long seed() {
        SimThread me = Scheduler.get().current();
        return me.initializes() ? me.initializers.peek().draw() : me.process.random().nextLong();
    }

    /** Returns a random number from 0 to 1. */
    public static double random() {
        SimThread me = Scheduler.get().current();
        return (me.initializes() ? new Random(seed()) : me.process.random()).nextDouble();
    }

    /** Returns a random UUID. */
    public static UUID randomUuid() {
        return new UUID(seed() & ~0xF000L | 0x4000L, seed() >>> 2 | Long.MIN_VALUE);
    }

    /** Shuffles a list. */
    public static void shuffle(List<?> list) {
        Collections.shuffle(list, new Random(seed()));
    }

    // ---------------------------------------------------------------------------------------------- processes

    /** Ends the process. */
    public static void exit(int status) {
        SimProcess.current().end("it called System.exit(" + status + ")");
    }

    /** Ends the process. */
    public static void halt(Runtime runtime, int status) {
        SimProcess.current().end("it called Runtime.halt(" + status + ")");
    }

    /** Does nothing: a process ends by a kill, which runs no hook. */
    public static void addShutdownHook(Runtime runtime, SimThread hook) {
        SimProcess.current();
    }

    /** Returns the wall clock of the node when the process began, if no fault had changed it. */
    public static long startTime(RuntimeMXBean ofJvm) {
        return SimProcess.EPOCH_MILLIS + SimProcess.current().beganMillis();
    }

    /** Returns the number of the process and its node, as the JDK does. */
    public static String processName(RuntimeMXBean ofJvm) {
        return PID + "@" + SimProcess.current().name();
    }

    /** Returns the number of the process, which is the only one of its node. */
    public static long pid(RuntimeMXBean ofJvm) {
        return PID;
    }

    public static long pid(ProcessHandle ofJvm) {
        return PID;
    }

    /** Returns the same memory at all times: what is free in this JVM depends on its collector and its compilers. */
    public static long totalMemory(Runtime runtime) {
        return MEMORY_BYTES;
    }

    public static long freeMemory(Runtime runtime) {
        return MEMORY_BYTES / 2;
    }

    /** Returns the same number of processors on all machines. */
    public static int availableProcessors(Runtime runtime) {
        return PROCESSORS;
    }

    /** Returns what runs an action once, when the program asks for it. The collector never does. */
    public static Cleaner.Cleanable register(Cleaner cleaner, Object object, Runnable action) {
        AtomicBoolean done = new AtomicBoolean();
        return () -> {
            if (done.compareAndSet(false, true)) {
                action.run();
            }
        };
    }

    /** Notes that the initializer of a class begins. Its thread keeps the baton where it does not block. */
    public static void initializerBegins(String type) {
        Scheduler.get().current().initializers.push(new Statics.Initializer(type));
    }

    /** Notes that the initializer of a class ends. */
    public static void initializerEnds() {
        Scheduler.get().current().initializers.pop();
    }

    /** Notes that a class with static fields that can change is initialized. */
    public static void initialized(String type) {
        Statics.add(type);
    }

    // ---------------------------------------------------------------------------------------------- files

    /** Returns the names of the files of a folder, sorted. The JDK returns them in the order of the file system. */
    public static String[] list(File folder) {
        String[] found = folder.list();
        if (found != null) {
            Arrays.sort(found);
        }
        return found;
    }

    /** Returns the files of a folder, sorted. */
    public static File[] listFiles(File folder) {
        return sorted(folder.listFiles());
    }

    /** Returns some files of a folder, sorted. */
    public static File[] listFiles(File folder, FileFilter filter) {
        return sorted(folder.listFiles(filter));
    }

    /** Returns some files of a folder, sorted. */
    public static File[] listFiles(File folder, FilenameFilter filter) {
        return sorted(folder.listFiles(filter));
    }

    private static File[] sorted(File... found) {
        if (found != null) {
            Arrays.sort(found);
        }
        return found;
    }

    /** Returns the time of now: all files of a run are young. */
    public static long lastModified(File file) {
        return file.exists() ? currentTimeMillis() : 0;
    }

    /** Returns the size of the disk, the same on all machines. */
    public static long totalSpace(File file) {
        return DISK_BYTES;
    }

    /** Returns the free space of the disk: none if it is full, and else the same on all machines. */
    public static long freeSpace(File file) {
        return SimProcess.current().disk().isFull() ? 0 : FREE_BYTES;
    }

    /** Lets the operation on a file that follows take time, on a slow disk. A kill at that time comes before the operation. */
    static void fileOperation() {
        Scheduler.get().fileOperation();
    }

    /** Removes a file. */
    public static boolean delete(File file) {
        fileOperation();
        boolean done = file.delete();
        if (done) {
            SimProcess.current().disk().renamed(file.toPath(), null);
        }
        return done;
    }

    /** Renames a file. */
    public static boolean renameTo(File file, File to) {
        fileOperation();
        try {
            SimProcess.current().disk().checkRename(file.toPath(), to.toPath());
        } catch (IOException refused) {
            return false;
        }
        boolean done = file.renameTo(to);
        if (done) {
            SimProcess.current().disk().renamed(file.toPath(), to.toPath());
        }
        return done;
    }

    /** Removes a file. */
    public static void delete(Path path) throws IOException {
        fileOperation();
        Files.delete(path);
        SimProcess.current().disk().renamed(path, null);
    }

    /** Removes a file, if it exists. */
    public static boolean deleteIfExists(Path path) throws IOException {
        fileOperation();
        boolean done = Files.deleteIfExists(path);
        if (done) {
            SimProcess.current().disk().renamed(path, null);
        }
        return done;
    }

    /** Renames a file. */
    public static Path move(Path from, Path to, CopyOption... options) throws IOException {
        fileOperation();
        SimProcess.current().disk().checkRename(from, to);
        Path done = Files.move(from, to, options);
        SimProcess.current().disk().renamed(from, to);
        return done;
    }

    /** Opens a file. */
    public static FileChannel open(Path path, OpenOption... options) throws IOException {
        fileOperation();
        FileChannel channel = FileChannel.open(path, options);
        boolean truncates = List.of(options).contains(StandardOpenOption.TRUNCATE_EXISTING);
        SimProcess.current().disk().opened(path, truncates, channel);
        return channel;
    }

    /** Writes to a file. */
    public static int write(FileChannel channel, ByteBuffer bytes) throws IOException {
        fileOperation();
        SimProcess.current().disk().check("write", channel);
        SimProcess.current().disk().needRoom(bytes.remaining());
        int count = channel.write(bytes);
        SimProcess.current().disk().written(channel);
        return count;
    }

    /** Writes to a place in a file. */
    public static int write(FileChannel channel, ByteBuffer bytes, long position) throws IOException {
        fileOperation();
        Disk disk = SimProcess.current().disk();
        disk.check("write", channel);
        int taken = disk.takes(channel, position, bytes.remaining());
        int count = channel.write(bytes.slice(bytes.position(), taken), position);
        bytes.position(bytes.position() + count);
        disk.writtenAt(channel);
        return count;
    }

    /** Makes a file shorter. */
    public static FileChannel truncate(FileChannel channel, long size) throws IOException {
        fileOperation();
        channel.truncate(size);
        SimProcess.current().disk().written(channel);
        return channel;
    }

    /** Syncs a file or a folder. */
    public static void force(FileChannel channel, boolean metadata) throws IOException {
        fileOperation();
        SimProcess.current().disk().checkSync("fsync", channel);
        channel.force(metadata);
        SimProcess.current().disk().synced(channel);
    }

    /** Syncs a file. */
    public static void sync(FileDescriptor descriptor) throws IOException {
        fileOperation();
        SimProcess.current().disk().checkSync("fsync", descriptor);
        descriptor.sync();
        SimProcess.current().disk().synced(descriptor);
    }

    /** Maps a part of a file. The end of the process unmaps it. */
    public static MappedByteBuffer map(FileChannel channel, FileChannel.MapMode mode, long position, long size)
        throws IOException {
        fileOperation();
        MappedByteBuffer buffer = channel.map(mode, position, size);
        SimProcess process = SimProcess.current();
        process.add(buffer);
        process.disk().mapped(channel, buffer, position);
        return buffer;
    }

    /** Writes a mapped part of a file to the disk. */
    public static MappedByteBuffer force(MappedByteBuffer buffer) {
        fileOperation();
        try {
            SimProcess.current().disk().checkSync("msync", buffer);
        } catch (IOException error) {
            throw new UncheckedIOException(error); // as the JDK does
        }
        buffer.force();
        SimProcess.current().disk().forced(buffer);
        return buffer;
    }

    // ------------------------------------------------------------ writes into a buffer, which can be a mapped part of a file

    public static ByteBuffer put(ByteBuffer buffer, byte[] bytes, int offset, int length) {
        return stored(writes(buffer, buffer.position(), length).put(bytes, offset, length));
    }

    public static ByteBuffer put(ByteBuffer buffer, byte[] bytes) {
        return stored(writes(buffer, buffer.position(), bytes.length).put(bytes));
    }

    public static ByteBuffer put(ByteBuffer buffer, ByteBuffer from) {
        return stored(writes(buffer, buffer.position(), from.remaining()).put(from));
    }

    public static ByteBuffer put(ByteBuffer buffer, byte value) {
        return stored(writesNumber(buffer, buffer.position(), Byte.BYTES).put(value));
    }

    public static ByteBuffer put(ByteBuffer buffer, int index, byte value) {
        return stored(writesNumber(buffer, index, Byte.BYTES).put(index, value));
    }

    public static ByteBuffer putInt(ByteBuffer buffer, int value) {
        return stored(writesNumber(buffer, buffer.position(), Integer.BYTES).putInt(value));
    }

    public static ByteBuffer putInt(ByteBuffer buffer, int index, int value) {
        return stored(writesNumber(buffer, index, Integer.BYTES).putInt(index, value));
    }

    public static ByteBuffer putLong(ByteBuffer buffer, long value) {
        return stored(writesNumber(buffer, buffer.position(), Long.BYTES).putLong(value));
    }

    public static ByteBuffer putLong(ByteBuffer buffer, int index, long value) {
        return stored(writesNumber(buffer, index, Long.BYTES).putLong(index, value));
    }

    /** Writes of bytes can take time. */
    private static ByteBuffer writes(ByteBuffer buffer, int position, int length) {
        if (buffer instanceof MappedByteBuffer) {
            Scheduler.get().mappedWrite();
        }
        return writesNumber(buffer, position, length);
    }

    private static ByteBuffer writesNumber(ByteBuffer buffer, int position, int length) {
        if (buffer instanceof MappedByteBuffer) {
            SimProcess.current().disk().touched(buffer, position, length);
        }
        return buffer;
    }

    private static ByteBuffer stored(ByteBuffer buffer) {
        if (buffer instanceof MappedByteBuffer) {
            MissingPages.drop(buffer);
            SimProcess.current().disk().stored();
        }
        return buffer;
    }

    /** Unmaps a part of a file, if the program has not. */
    static void unmap(MappedByteBuffer buffer) {
        UNMAPPING.accept(buffer);
    }

    /** Returns what unmaps a buffer. Only {@code sun.misc.Unsafe} can, and the compiler warns of its name. */
    private static Consumer<MappedByteBuffer> unmapping() {
        try {
            Class<?> type = Class.forName("sun.misc.Unsafe");
            Field field = type.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            Object unsafe = field.get(null);
            Method method = type.getMethod("invokeCleaner", ByteBuffer.class);
            return buffer -> {
                try {
                    method.invoke(unsafe, buffer);
                } catch (ReflectiveOperationException e) {
                    throw new IllegalStateException(e);
                }
            };
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("this JVM has no sun.misc.Unsafe.invokeCleaner", e);
        }
    }

    // ---------------------------------------------------------------------------------------------- the guard

    /** Throws the error of a kill again, and ends the run on an error of the JVM. Handlers that catch everything begin with this. */
    public static void caught(Throwable error) {
        if (error instanceof Killed end) {
            throw end;
        }
        Scheduler.get().guard().endOn(error);
    }

    /** Ends the run, because the code is about to call an API that has no hook. */
    public static void unhooked(String what) {
        throw Scheduler.get().guard().unhooked(what);
    }
}
