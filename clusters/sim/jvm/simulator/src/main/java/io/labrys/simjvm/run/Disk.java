package io.labrys.simjvm.run;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * What survives when a node loses its power. The files themselves are in a folder of this machine, and a kill loses nothing of them.
 *
 * <p>The disk has names of files, and contents that names lead to. A sync of a file makes its content durable, and all changes of names so far,
 * as on a file system with a journal. A loss of power keeps the first of the later changes of names. Of a file that was written,
 * it keeps the first of the later writes. Of a mapped file, it keeps some of the later pages of {@value #PAGE_BYTES} bytes.
 */
public final class Disk {
    private static final int PAGE_BYTES = 4096;
    private static final byte[] EMPTY = {};

    private final Path root;
    private final Random random;
    private final boolean keeps;
    private Map<Path, Content> names = new TreeMap<>();
    private Map<Path, Content> durableNames = new TreeMap<>();
    private final List<Renaming> journal = new ArrayList<>();
    /** The contents of open files, channels, descriptors and mapped buffers. */
    private final Map<Object, Content> handles = new IdentityHashMap<>();

    /** The content of a file. */
    private static final class Content {
        /** What survives for sure. */
        byte[] synced = EMPTY;
        /** The content after each later write. */
        final List<byte[]> later = new ArrayList<>();
        boolean isMapped;
    }

    /** A change of names. A new file has no {@code from}, and a removed one has no {@code to}. */
    private record Renaming(Path from, Path to, Content content) {
        void apply(Map<Path, Content> names) {
            if (from == null) {
                names.put(to, content);
            } else if (to == null) {
                names.remove(from);
            } else {
                for (Path name : List.copyOf(names.keySet())) {
                    if (name.startsWith(from)) {
                        names.put(to.resolve(from.relativize(name)), names.remove(name));
                    }
                }
            }
        }
    }

    /** The data that a loss of power took: the number of files before, of changed ones, and of lost bytes. */
    public record Lost(int files, int changed, long bytes) {}

    /**
     * Makes the disk of a node.
     *
     * @param root the folder with the files of the node; it has none yet
     * @param seed draws what a loss of power keeps
     * @param keeps whether it remembers what is durable. This takes time, and only a run with losses of power needs it
     */
    public Disk(Path root, long seed, boolean keeps) {
        this.root = key(root);
        this.random = new Random(seed);
        this.keeps = keeps;
    }

    private static Path key(Path path) {
        return path.toAbsolutePath().normalize();
    }

    /** Notes that a program has opened a file, which may be new; {@code handle} is the object that leads to it. */
    void opened(Path path, boolean truncated, Object handle) {
        if (!keeps || !Files.isRegularFile(path)) {
            return;
        }
        Content content = names.get(key(path));
        if (content == null) {
            content = new Content();
            rename(null, key(path), content);
        } else if (truncated) {
            content.later.add(EMPTY);
        }
        handles.put(handle, content);
    }

    /** Notes that an object leads to the same file as another one. */
    void same(Object known, Object handle) {
        Content content = handles.get(known);
        if (content != null) {
            handles.put(handle, content);
        }
    }

    /** Notes that a program has written to an open file. */
    void written(Object handle) {
        Content content = handles.get(handle);
        Path name = content == null ? null : nameOf(content);
        if (name != null && !content.isMapped) {
            content.later.add(read(name));
        }
    }

    /** Notes that a program has renamed or removed a file or a folder. */
    void renamed(Path from, Path to) {
        if (keeps) {
            rename(key(from), to == null ? null : key(to), null);
        }
    }

    private void rename(Path from, Path to, Content content) {
        Renaming change = new Renaming(from, to, content);
        change.apply(names);
        journal.add(change);
    }

    /** Notes that a program has synced an open file, or a folder. */
    void synced(Object handle) {
        if (!keeps) {
            return;
        }
        Content content = handles.get(handle);
        Path name = content == null ? null : nameOf(content);
        if (name != null) {
            content.synced = read(name);
            content.later.clear();
        }
        journal.forEach(change -> change.apply(durableNames));
        journal.clear();
    }

    /** Notes that a program has mapped an open file, which has at least the size of the mapped part since. */
    void mapped(Object handle, MappedByteBuffer buffer, long position) throws IOException {
        Content content = handles.get(handle);
        if (content == null) {
            return;
        }
        if (position != 0) {
            throw Scheduler.get().guard().unhooked("FileChannel.map at position " + position + " in a run with losses of power");
        }
        content.isMapped = true;
        content.later.clear();
        content.synced = Arrays.copyOf(content.synced, Math.max(content.synced.length, buffer.capacity()));
        handles.put(buffer, content);
    }

    /** Notes that a program has written a mapped buffer to the disk. */
    void forced(MappedByteBuffer buffer) {
        if (!keeps) {
            return;
        }
        Content content = handles.get(buffer);
        if (content == null) {
            throw Scheduler.get().guard().unhooked("MappedByteBuffer.force of a part of a mapped file");
        }
        ByteBuffer now = buffer.duplicate().clear();
        ByteBuffer synced = ByteBuffer.wrap(content.synced, 0, now.limit());
        for (int at = now.mismatch(synced); at >= 0; at = now.mismatch(synced)) {
            int page = now.position() + at - (now.position() + at) % PAGE_BYTES;
            int end = Math.min(page + PAGE_BYTES, now.limit());
            now.position(page).get(content.synced, page, end - page);
            synced.position(end);
        }
        journal.forEach(change -> change.apply(durableNames));
        journal.clear();
    }

    /** Notes that the process has ended: nothing leads to its files any more. */
    void closeAll() {
        handles.clear();
    }

    /** Loses what is not durable, but for a random part. No process may run. */
    public Lost losePower() throws IOException {
        double share = random.nextBoolean() ? 0 : random.nextDouble();
        Map<Path, byte[]> before = new TreeMap<>();
        for (Path name : names.keySet()) {
            before.put(name, read(name));
        }
        Map<Path, Content> after = new TreeMap<>(durableNames);
        journal.subList(0, (int) Math.round(share * journal.size())).forEach(change -> change.apply(after));
        int changed = 0;
        long lost = 0;
        for (Map.Entry<Path, Content> each : after.entrySet()) {
            Content content = each.getValue();
            Path now = nameOf(content);
            content.synced = content.isMapped ? pages(content, now == null ? content.synced : before.get(now), share)
                : writes(content, share);
            content.later.clear();
            content.isMapped = false;
        }
        for (Map.Entry<Path, byte[]> each : before.entrySet()) {
            Content content = after.get(each.getKey());
            int differing = content == null ? each.getValue().length : differing(each.getValue(), content.synced);
            changed += content == null || differing > 0 || content.synced.length != each.getValue().length ? 1 : 0;
            lost += differing;
        }
        write(after);
        names = after;
        durableNames = new TreeMap<>(after);
        journal.clear();
        return new Lost(before.size(), changed, lost);
    }

    /** Returns the synced content with the first of the later writes. */
    private byte[] writes(Content content, double share) {
        int kept = (int) Math.round(share * content.later.size());
        return kept == 0 ? content.synced : content.later.get(kept - 1);
    }

    /** Returns the synced content with some of the later pages. */
    private byte[] pages(Content content, byte[] now, double share) {
        byte[] made = Arrays.copyOf(content.synced, now.length);
        for (int page = 0; page < now.length; page += PAGE_BYTES) {
            int end = Math.min(page + PAGE_BYTES, now.length);
            if (!Arrays.equals(made, page, end, now, page, end) && random.nextDouble() < share) {
                System.arraycopy(now, page, made, page, end - page);
            }
        }
        return made;
    }

    /** Returns the number of bytes of a content that another one lacks. */
    private static int differing(byte[] before, byte[] after) {
        int shared = Math.min(before.length, after.length);
        int count = before.length - shared;
        for (int i = 0; i < shared; i++) {
            count += before[i] != after[i] ? 1 : 0;
        }
        return count;
    }

    private void write(Map<Path, Content> after) throws IOException {
        Files.createDirectories(root);
        try (Stream<Path> found = Files.walk(root)) {
            for (Path path : found.filter(each -> !each.equals(root)).sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
        for (Map.Entry<Path, Content> each : after.entrySet()) {
            Files.createDirectories(each.getKey().getParent());
            Files.write(each.getKey(), each.getValue().synced);
        }
    }

    private Path nameOf(Content content) {
        for (Map.Entry<Path, Content> each : names.entrySet()) {
            if (each.getValue() == content) {
                return each.getKey();
            }
        }
        return null;
    }

    private static byte[] read(Path path) {
        try {
            return Files.readAllBytes(path);
        } catch (IOException e) {
            throw new UncheckedIOException(e); // the file is in this machine's memory
        }
    }
}
