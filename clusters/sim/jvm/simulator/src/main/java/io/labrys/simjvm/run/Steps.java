package io.labrys.simjvm.run;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * The steps of the disks of a run, each a change of a file or a sync, and those that the controller waits for.
 *
 * <p>Right after a step that it waits for, the process stands still. The controller kills it, or lets it go on.
 */
public final class Steps {
    /** The step right before a sync, which has made nothing durable yet. */
    static final String SYNCING = "syncing";
    /** Each step but those right before syncs. */
    private static final String ANY = "any";

    private final Map<String, Long> numbers = new HashMap<>();
    private final StringBuilder noted = new StringBuilder();
    private final Map<Long, Wanted> wanted = new TreeMap<>();
    private long all;
    /** How many messages processes have got so far. */
    private long got;

    /** A change of a disk that no sync has made durable. */
    public record Unsynced(long number, boolean names, String file) {}

    /** A step that the controller waits for: the n-th of a kind, on a file, of one of some nodes. */
    private static final class Wanted {
        private final List<String> nodes;
        private final String call;
        private final Pattern file;
        private final long nth;
        private final Map<String, Long> seen = new HashMap<>();

        Wanted(List<String> nodes, String call, Pattern file, long nth) {
            this.nodes = nodes;
            this.call = call;
            this.file = file;
            this.nth = nth;
        }

        boolean takes(String node, String of, String path) {
            boolean isOne = call.equals(ANY) ? !of.equals(SYNCING) : call.equals(of);
            boolean counts = nodes.contains(node) && isOne && file.matcher(path).matches();
            return counts && seen.merge(node, 1L, Long::sum) == nth;
        }
    }

    /** Waits for a step. */
    public void want(long id, List<String> nodes, String call, String file, long nth) {
        wanted.put(id, new Wanted(nodes, call, Pattern.compile(file), nth));
    }

    /** Waits for a step no longer. */
    public void drop(long id) {
        wanted.remove(id);
    }

    /** Notes a message that a process gets. */
    public void message() {
        got++;
    }

    /** Returns the steps so far, and forgets them: a line for each. */
    public String take() {
        String lines = noted.toString();
        noted.setLength(0);
        return lines;
    }

    /** Returns the number of the step of a node that begins now. */
    long next(String node) {
        all++;
        return numbers.merge(node, 1L, Long::sum);
    }

    /** Notes a step that is done. If the controller waits for it, the process stands still. */
    void made(String node, String call, String file, List<Unsynced> unsynced) {
        long number = numbers.get(node);
        List<String> words = new ArrayList<>();
        for (Unsynced change : unsynced) {
            words.add(change.number() + (change.names() ? "n" : "c") + change.file());
        }
        Scheduler scheduler = Scheduler.get();
        String line = String.join("\t", List.of(node, String.valueOf(number), String.valueOf(scheduler.now()), call, file,
            String.valueOf(got + scheduler.output().sent() + all - number), String.join("\u0001", words)));
        noted.append(line).append('\n');
        boolean stands = false;
        for (Map.Entry<Long, Wanted> each : wanted.entrySet()) {
            if (each.getValue().takes(node, call, file)) {
                scheduler.output().stepped(node, each.getKey(), line);
                stands = true;
            }
        }
        if (stands) {
            scheduler.standStill();
        }
    }
}
