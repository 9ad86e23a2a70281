package io.labrys.simjvm.run;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NavigableSet;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;

/**
 * What survives when a node loses its power. The files themselves are in a folder of this machine, and a kill loses nothing of them.
 *
 * <p>The disk has names of files, and contents that names lead to. A sync of a file makes its content durable, and all changes of names so far,
 * as on a file system with a journal. A loss of power keeps the first of the later changes of names. Of a file that was written,
 * it keeps the first of the later writes. Of a mapped file, it keeps some of the later pages of {@value #PAGE_BYTES} bytes.
 *
 * <p>Mapped files can be large and almost empty. So the disk keeps no copy of them, but the durable bytes of each page that is about to be written.
 */
public final class Disk {
    static final int PAGE_BYTES = 4096;
    private static final int SECTOR_BYTES = 512;
    private static final String PROBE = ".labrys-room";
    private static final byte[] EMPTY = {};

    private final Path root;
    private final Random random;
    private final boolean keeps;
    private final Steps steps;
    private final Failures failures;
    private Map<Path, Content> names = new TreeMap<>();
    private Map<Path, Content> durableNames = new TreeMap<>();
    private final List<Renaming> journal = new ArrayList<>();
    /** The contents of open files, channels, descriptors and mapped buffers. */
    private final Map<Object, Content> handles = new IdentityHashMap<>();
    /** The mapped files of the process, by the addresses of their first bytes. */
    private final NavigableMap<Long, Mapping> mappings = new TreeMap<>();
    /** Where the first byte of a mapped file is or would be in the memory, by the channel that last mapped a part of the file. */
    private final Map<Object, Long> addresses = new IdentityHashMap<>();
    /** The addresses of pages of mapped files that the process wrote by a channel. They have space, even if they have only zeros. */
    private final NavigableSet<Long> allocated = new TreeSet<>();
    private int links;
    private boolean full;
    /** The mapped file that a write of a number or of bytes has reached, until it is done. */
    private Content touched;

    /** The content of a file. */
    private static final class Content {
        /** What survives for sure; not of a mapped file. */
        byte[] synced = EMPTY;
        /** The content after each later write; not of a mapped file. */
        final List<byte[]> later = new ArrayList<>();
        /** The numbers of the steps of the later writes. */
        final List<Long> numbers = new ArrayList<>();
        /** Another name of a mapped file, so that it outlives its own name; null if the file was never mapped. */
        Path kept;
        /** What survives for sure of each page of a mapped file that was written later, by its number. */
        final NavigableMap<Integer, byte[]> pages = new TreeMap<>();
        /** The number of the last step that changed each of these pages. */
        final NavigableMap<Integer, Long> changed = new TreeMap<>();
        /** The pages that a failed sync should have made durable. Only a new write changes that. */
        final NavigableSet<Integer> failed = new TreeSet<>();

        void isDurable(byte[] now) {
            synced = now;
            later.clear();
            numbers.clear();
        }

        void pagesAreDurable(int end) {
            pages.keySet().removeIf(page -> page < end && !failed.contains(page));
            changed.keySet().removeIf(page -> page < end && !failed.contains(page));
        }

        byte[] newest() {
            return later.isEmpty() ? synced : later.get(later.size() - 1);
        }

        /** Returns what is durable of a content: in the place of pages whose sync has failed, what was durable before, or zeros. */
        byte[] without(byte[] now) {
            byte[] left = now.clone();
            for (int page : failed) {
                for (int i = page * PAGE_BYTES; i < Math.min(left.length, (page + 1) * PAGE_BYTES); i++) {
                    left[i] = i < synced.length ? synced[i] : 0;
                }
            }
            return left;
        }

        boolean isMapped() {
            return kept != null;
        }
    }

    /** A part of the memory that is the beginning of a file. */
    private record Mapping(long end, Content content) {}

    /** A change of names. A new file has no {@code from}, and a removed one has no {@code to}. */
    private record Renaming(long number, Path from, Path to, Content content) {
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
     * @param steps notes its steps; null if the run needs none
     */
    public Disk(Path root, long seed, boolean keeps, Steps steps) {
        this.root = key(root);
        this.random = new Random(seed);
        this.keeps = keeps;
        this.steps = steps;
        this.failures = new Failures(this.root.resolve("data"));
    }

    /** Lets calls on files fail from now on; see {@link Failures}. */
    public void fail(long key, String call, String file, long nth, long times, String error) {
        failures.add(key, call, file, nth, times, error);
    }

    /** Lets calls fail no longer by the rules of a key. */
    public void mend(long key) {
        failures.remove(key);
    }

    /** Has the faults of another disk from now on. */
    public void takeFaults(Disk other) {
        full = other.full;
        failures.take(other.failures);
    }

    /** Comes before a call on an open file, which can fail. */
    void check(String call, Object handle) throws IOException {
        failures.check(call, handle);
    }

    /** Comes before a file gets another name, which can fail. */
    void checkRename(Path from, Path to) throws IOException {
        failures.check("rename", key(from), key(to));
    }

    /** Comes before a sync of an open file, a folder or a mapped buffer, which can fail. */
    void checkSync(String call, Object handle) throws IOException {
        syncing(handle);
        try {
            check(call, handle);
        } catch (IOException error) {
            Content content = handles.get(handle);
            Path name = content == null || content.isMapped() ? null : nameOf(content);
            if (name != null) {
                content.failed.addAll(differingPages(content.synced, read(name)));
                content.isDurable(content.synced);
            } else if (content != null) {
                content.failed.addAll(content.pages.keySet());
            }
            throw error;
        }
    }

    private static List<Integer> differingPages(byte[] before, byte[] after) {
        List<Integer> pages = new ArrayList<>();
        for (int begin = 0; begin < Math.max(before.length, after.length); begin += PAGE_BYTES) {
            int end = begin + PAGE_BYTES;
            if (!Arrays.equals(before, Math.min(begin, before.length), Math.min(end, before.length),
                after, Math.min(begin, after.length), Math.min(end, after.length))) {
                pages.add(begin / PAGE_BYTES);
            }
        }
        return pages;
    }

    /** Returns the number of the step that begins now, from 1. */
    private long next() {
        return steps == null ? 0 : steps.next(nodeName());
    }

    private String nodeName() {
        return root.getFileName().toString();
    }

    /** Ends a step: notes it. If somebody waits for it, the process stands still here. */
    private void made(String call, Path path) {
        if (steps != null) {
            steps.made(nodeName(), call, path == null ? "" : shown(path), unsynced());
        }
    }

    private String shown(Path path) {
        Path data = root.resolve("data");
        return (path.startsWith(data) ? data : root).relativize(path).toString().replaceAll("\\p{Cntrl}", "?");
    }

    /** Returns the changes that are not durable, the oldest first. */
    private List<Steps.Unsynced> unsynced() {
        List<Steps.Unsynced> changes = new ArrayList<>();
        for (Renaming change : journal) {
            changes.add(new Steps.Unsynced(change.number(), true, shown(change.to() == null ? change.from() : change.to())));
        }
        for (Map.Entry<Path, Content> each : names.entrySet()) {
            Content content = each.getValue();
            content.numbers.forEach(number -> changes.add(new Steps.Unsynced(number, false, shown(each.getKey()))));
            content.changed.values().stream().distinct()
                .forEach(number -> changes.add(new Steps.Unsynced(number, false, shown(each.getKey()))));
        }
        changes.sort(Comparator.comparingLong(Steps.Unsynced::number));
        return changes;
    }

    private static Path key(Path path) {
        return path.toAbsolutePath().normalize();
    }

    /** Fills the disk, or frees it again. A full disk takes no further byte; files without content, and longer ones with holes, are possible. */
    public void fill(boolean now) {
        full = now;
    }

    /** Returns whether the disk is full. */
    public boolean isFull() {
        return full;
    }

    /** Tries to write a small file, and removes it. Returns whether that worked. */
    public boolean takesFile() throws IOException {
        try {
            needRoom(PROBE.length());
        } catch (IOException refused) {
            return false;
        }
        Files.delete(Files.writeString(Files.createDirectories(root).resolve(PROBE), PROBE));
        return true;
    }

    /** Comes before a write of bytes into a file. */
    void needRoom(int length) throws IOException {
        if (full && length > 0) {
            throw new IOException("No space left on device");
        }
    }

    /**
     * Comes before a write at a place of a file. Returns how many of the bytes the disk takes. A full disk takes those of the first pages, which
     * have space.
     */
    int takes(FileChannel channel, long position, int length) throws IOException {
        Long address = addresses.get(channel);
        int taken = length;
        if (full) {
            taken = 0;
            long page = position / PAGE_BYTES;
            while (taken < length && hasSpace(channel, page, address)) {
                taken = (int) Math.min(length, ++page * PAGE_BYTES - position);
            }
            needRoom(length > 0 && taken == 0 ? length : 0);
        }
        if (address != null && taken > 0) {
            Content content = handles.get(channel);
            long number = content == null ? 0 : next();
            for (long page = position / PAGE_BYTES; page * PAGE_BYTES < position + taken; page++) {
                allocated.add(address + page * PAGE_BYTES);
                if (content != null) {
                    touch(content, (int) page, number);
                }
            }
        }
        return taken;
    }

    private boolean hasSpace(FileChannel channel, long page, Long address) throws IOException {
        if (address != null && allocated.contains(address + page * PAGE_BYTES)) {
            return true;
        }
        ByteBuffer bytes = ByteBuffer.allocate(PAGE_BYTES);
        channel.read(bytes, page * PAGE_BYTES);
        bytes.flip();
        while (bytes.hasRemaining()) {
            if (bytes.get() != 0) {
                return true;
            }
        }
        return false;
    }

    /** Notes that a program has written at a place of an open file. */
    void writtenAt(FileChannel channel) {
        Content content = handles.get(channel);
        if (content != null && !content.isMapped()) {
            written(channel);
        } else if (content != null) {
            made("write", nameOf(content));
        }
    }

    /** A page of a mapped file is about to be written. */
    private static void touch(Content content, int page, long number) {
        content.pages.computeIfAbsent(page, each -> page(content, each));
        content.failed.remove(page);
        content.changed.put(page, number);
    }

    /** Notes that a fault has changed a file while no process ran. The change is durable. */
    public void damaged(Path path) {
        Content content = names.get(key(path));
        if (content == null) {
            return;
        }
        content.failed.clear();
        if (content.isMapped()) {
            content.pagesAreDurable(Integer.MAX_VALUE);
        } else {
            content.isDurable(read(path));
        }
    }

    /** Notes that a program has opened a file, which may be new; {@code handle} is the object that leads to it. */
    void opened(Path path, boolean truncated, Object handle) {
        failures.opened(key(path), handle);
        if (!keeps || !Files.isRegularFile(path)) {
            return;
        }
        Content content = names.get(key(path));
        if (content == null) {
            content = new Content();
            handles.put(handle, content);
            rename(null, key(path), content);
            made("create", key(path));
        } else if (truncated) {
            checkWritable(content);
            content.later.add(EMPTY);
            content.numbers.add(next());
            handles.put(handle, content);
            made("truncate", key(path));
        }
        handles.put(handle, content);
    }

    /** Notes that an object leads to the same file as another one. */
    void same(Object known, Object handle) {
        failures.same(known, handle);
        Content content = handles.get(known);
        if (content != null) {
            handles.put(handle, content);
        }
    }

    /** Notes that a program has written to an open file. */
    void written(Object handle) {
        Content content = handles.get(handle);
        Path name = content == null ? null : nameOf(content);
        if (name != null) {
            checkWritable(content);
            byte[] now = read(name);
            if (!content.failed.isEmpty()) {
                content.failed.removeAll(differingPages(content.newest(), now));
            }
            content.later.add(now);
            content.numbers.add(next());
            made("write", name);
        }
    }

    private static void checkWritable(Content content) {
        if (content.isMapped()) {
            throw Scheduler.get().guard().unhooked("a write to a mapped file beside its mapping, in a run with losses of power");
        }
    }

    /** Notes that a program has renamed or removed a file or a folder. */
    void renamed(Path from, Path to) {
        if (keeps) {
            rename(key(from), to == null ? null : key(to), null);
            made(to == null ? "remove" : "rename", key(to == null ? from : to));
        }
    }

    private void rename(Path from, Path to, Content content) {
        Renaming change = new Renaming(next(), from, to, content);
        change.apply(names);
        journal.add(change);
    }

    /** Notes that a program has waited for the sync of an open file, a folder or a mapped buffer, which is about to be done. */
    private void syncing(Object handle) {
        if (keeps) {
            Content content = handles.get(handle);
            next();
            made(Steps.SYNCING, content == null ? null : nameOf(content));
        }
    }

    /** Notes that a program has synced an open file, or a folder. */
    void synced(Object handle) {
        if (!keeps) {
            return;
        }
        Content content = handles.get(handle);
        Path name = content == null ? null : nameOf(content);
        if (content != null && content.isMapped()) {
            content.pagesAreDurable(Integer.MAX_VALUE);
        } else if (name != null) {
            content.isDurable(content.without(read(name)));
        }
        namesAreDurable();
        next();
        made("sync", name);
    }

    private void namesAreDurable() {
        journal.forEach(change -> change.apply(durableNames));
        journal.clear();
    }

    /** Notes that a program has mapped an open file, which has at least the size of the mapped part since. */
    void mapped(FileChannel handle, MappedByteBuffer buffer, long position) throws IOException {
        long begin = Addresses.of(buffer);
        long end = begin + buffer.capacity();
        addresses.put(handle, begin - position);
        failures.same(handle, buffer);
        allocated.subSet(begin, end).clear(); // of a file that the program has unmapped
        Content content = handles.get(handle);
        if (content == null) {
            return;
        }
        if (position != 0) {
            throw Scheduler.get().guard().unhooked("FileChannel.map at position " + position + " in a run with losses of power");
        }
        if (!content.isMapped()) {
            int size = Math.max(content.synced.length, content.later.stream().mapToInt(each -> each.length).max().orElse(0));
            byte[] synced = Arrays.copyOf(content.synced, size);
            for (int page = 0; page * PAGE_BYTES < size; page++) {
                content.pages.put(page, Arrays.copyOfRange(synced, page * PAGE_BYTES, (page + 1) * PAGE_BYTES));
                content.changed.put(page, content.numbers.isEmpty() ? 0L : content.numbers.get(content.numbers.size() - 1));
            }
            content.isDurable(EMPTY);
            content.kept = Files.createDirectories(root.resolveSibling(root.getFileName() + ".kept")).resolve(String.valueOf(links++));
            Files.deleteIfExists(content.kept); // that of a disk that was wiped
            Files.createLink(content.kept, nameOf(content));
        }
        handles.put(buffer, content);
        mappings.entrySet().removeIf(each -> each.getKey() < end && begin < each.getValue().end()); // the program has unmapped these
        mappings.put(begin, new Mapping(end, content));
    }

    /** Notes that a program will now write to a buffer, which can be a part of a mapped file, from its position on. */
    void touched(ByteBuffer buffer, int position, int length) {
        if (full) {
            MissingPages.find(buffer, position, length, allocated);
        }
        if (!keeps || length == 0) {
            return;
        }
        long address = Addresses.of(buffer) + position;
        Map.Entry<Long, Mapping> found = mappings.floorEntry(address);
        if (found == null || address >= found.getValue().end()) {
            return; // it is no part of a file
        }
        Content content = found.getValue().content();
        int first = (int) ((address - found.getKey()) / PAGE_BYTES);
        int last = (int) ((address - found.getKey() + length - 1) / PAGE_BYTES);
        long number = next();
        for (int page = first; page <= last; page++) {
            touch(content, page, number);
        }
        touched = content;
    }

    /** Notes that a program has written to a buffer, after {@link #touched}. */
    void stored() {
        Content content = touched;
        touched = null;
        if (content != null) {
            made("write", nameOf(content));
        }
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
        content.pagesAreDurable((buffer.capacity() + PAGE_BYTES - 1) / PAGE_BYTES);
        namesAreDurable();
        next();
        made("sync", nameOf(content));
    }

    /** Notes that the process has ended: nothing leads to its files any more. */
    void closeAll() {
        handles.clear();
        mappings.clear();
        addresses.clear();
        allocated.clear();
        failures.closeAll();
    }

    /** What a loss of power leaves of the changes that are not durable. */
    private interface Survivors {
        List<Renaming> ofNames(List<Renaming> changes);

        byte[] of(Content content);

        /** Returns what is left of a page of a mapped file, of which it gets the durable content and the content now. */
        byte[] ofPage(Content content, int page, byte[] durable, byte[] now);
    }

    /** With one half probability nothing; else the first changes of names and of each file, and some of the pages. */
    private final class Drawn implements Survivors {
        private final double share = random.nextBoolean() ? 0 : random.nextDouble();

        @Override
        public List<Renaming> ofNames(List<Renaming> changes) {
            return changes.subList(0, (int) Math.round(share * changes.size()));
        }

        @Override
        public byte[] of(Content content) {
            int kept = (int) Math.round(share * content.later.size());
            return kept == 0 ? content.synced : content.later.get(kept - 1);
        }

        @Override
        public byte[] ofPage(Content content, int page, byte[] durable, byte[] now) {
            return random.nextDouble() < share ? now : durable;
        }
    }

    /** All but the changes of some steps. The newest write that is left can be torn between two sectors. */
    private static final class Chosen implements Survivors {
        private final Set<Long> lost;
        private final long torn;

        Chosen(Set<Long> lost, long torn) {
            this.lost = lost;
            this.torn = torn;
        }

        @Override
        public List<Renaming> ofNames(List<Renaming> changes) {
            return changes.stream().filter(change -> !lost.contains(change.number())).toList();
        }

        @Override
        public byte[] of(Content content) {
            byte[] left = content.synced;
            byte[] before = content.synced;
            for (int i = 0; i < content.later.size(); i++) {
                byte[] after = content.later.get(i);
                long number = content.numbers.get(i);
                if (!lost.contains(number)) {
                    left = Change.between(before, after).on(left, number == torn);
                }
                before = after;
            }
            return left;
        }

        @Override
        public byte[] ofPage(Content content, int page, byte[] durable, byte[] now) {
            long number = content.changed.get(page);
            if (lost.contains(number)) {
                return durable;
            }
            return number == torn ? Change.between(durable, now).on(durable, true) : now;
        }
    }

    /** A change of a content: bytes at a place, and the size afterwards, if it is another one. */
    private record Change(int begin, byte[] bytes, int sizeBefore, int sizeAfter) {
        static Change between(byte[] before, byte[] after) {
            int begin = Arrays.mismatch(before, after);
            if (begin < 0) {
                return new Change(0, EMPTY, before.length, after.length);
            }
            int end = after.length;
            while (before.length == after.length && before[end - 1] == after[end - 1]) {
                end--;
            }
            return new Change(begin, Arrays.copyOfRange(after, begin, end), before.length, after.length);
        }

        /** Returns a content with the change. A torn one ends at the first boundary of sectors within its bytes, if there is one. */
        byte[] on(byte[] content, boolean torn) {
            int boundary = (begin / SECTOR_BYTES + 1) * SECTOR_BYTES;
            int count = torn && boundary < begin + bytes.length ? boundary - begin : bytes.length;
            int size = sizeAfter < sizeBefore ? Math.min(content.length, sizeAfter) : Math.max(content.length, begin + count);
            byte[] changed = Arrays.copyOf(content, size);
            if (begin < size) {
                System.arraycopy(bytes, 0, changed, begin, Math.min(count, size - begin));
            }
            return changed;
        }
    }

    /** Loses what is not durable, but for a random part. No process may run. */
    public Lost losePower() throws IOException {
        return lose(new Drawn());
    }

    /**
     * Loses the changes at these places from the newest one, which has place 1. No process may run.
     *
     * @param places the places; null for all
     * @param torn whether the newest write that is left is torn
     */
    public Lost losePower(Set<Integer> places, boolean torn) throws IOException {
        List<Steps.Unsynced> changes = unsynced();
        Set<Long> lost = new HashSet<>();
        long last = -1;
        for (int place = changes.size(); place > 0; place--) {
            Steps.Unsynced change = changes.get(changes.size() - place);
            if (places == null || places.contains(place)) {
                lost.add(change.number());
            } else if (!change.names()) {
                last = change.number();
            }
        }
        return lose(new Chosen(lost, torn ? last : -1));
    }

    private Lost lose(Survivors survivors) throws IOException {
        Map<Path, Content> before = new TreeMap<>(names);
        Map<Path, byte[]> written = new TreeMap<>();
        for (Map.Entry<Path, Content> each : before.entrySet()) {
            if (!each.getValue().isMapped()) {
                written.put(each.getKey(), read(each.getKey()));
            }
        }
        Map<Path, Content> after = new TreeMap<>(durableNames);
        survivors.ofNames(journal).forEach(change -> change.apply(after));
        Map<Content, Integer> reverted = new IdentityHashMap<>();
        for (Content content : after.values()) {
            if (content.isMapped()) {
                reverted.put(content, revert(content, survivors));
            } else {
                content.isDurable(content.without(survivors.of(content)));
                content.failed.clear();
            }
        }
        int changed = 0;
        long lost = 0;
        for (Map.Entry<Path, Content> each : before.entrySet()) {
            Content content = after.get(each.getKey());
            byte[] now = written.get(each.getKey());
            if (content == each.getValue() && content.isMapped()) {
                int differing = reverted.get(content);
                changed += differing > 0 ? 1 : 0;
                lost += differing;
            } else if (content == null || now == null || content.isMapped()) {
                changed++;
                lost += now == null ? Files.size(each.getKey()) : now.length;
            } else {
                changed += Arrays.equals(now, content.synced) ? 0 : 1;
                lost += differing(now, content.synced);
            }
        }
        write(after);
        names = after;
        durableNames = new TreeMap<>(after);
        journal.clear();
        return new Lost(before.size(), changed, lost);
    }

    /** Takes the later pages of a mapped file, but for those that are left. Returns the number of bytes that this changes. */
    private int revert(Content content, Survivors survivors) throws IOException {
        boolean hasName = nameOf(content) != null; // of a removed file, nothing later survives
        int changed = 0;
        for (Map.Entry<Integer, byte[]> each : content.pages.entrySet()) {
            byte[] now = page(content, each.getKey());
            byte[] durable = Arrays.copyOf(each.getValue(), now.length);
            if (Arrays.equals(durable, now)) {
                continue;
            }
            byte[] left = hasName && !content.failed.contains(each.getKey()) ? survivors.ofPage(content, each.getKey(), durable, now) : durable;
            if (!Arrays.equals(left, now)) {
                changed += differing(now, left);
                try (RandomAccessFile file = new RandomAccessFile(content.kept.toFile(), "rw")) {
                    file.seek((long) each.getKey() * PAGE_BYTES);
                    file.write(left);
                }
            }
        }
        content.failed.clear();
        content.pagesAreDurable(Integer.MAX_VALUE);
        return changed;
    }

    /** Returns a page of a mapped file, as the file is now. The last one can be shorter. */
    private static byte[] page(Content content, int number) {
        try (RandomAccessFile file = new RandomAccessFile(content.kept.toFile(), "r")) {
            long begin = (long) number * PAGE_BYTES;
            byte[] page = new byte[(int) Math.min(PAGE_BYTES, Math.max(0, file.length() - begin))];
            file.seek(begin);
            file.readFully(page);
            return page;
        } catch (IOException e) {
            throw new UncheckedIOException(e); // the file is in this machine's memory
        }
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
            if (each.getValue().isMapped()) {
                Files.createLink(each.getKey(), each.getValue().kept);
            } else {
                Files.write(each.getKey(), each.getValue().synced);
            }
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
