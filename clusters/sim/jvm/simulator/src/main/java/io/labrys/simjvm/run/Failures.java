package io.labrys.simjvm.run;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/** The calls on files of a node that fail. A rule is for calls of one kind, from the n-th on. */
final class Failures {
    private final Path data;
    private final Map<Object, Path> opened = new IdentityHashMap<>();
    private final List<Rule> rules = new ArrayList<>();

    /** Calls that fail, and how many of them there were. */
    private static final class Rule {
        private final long key;
        private final String call;
        private final Pattern file;
        private final long nth;
        private final long times;
        private final String error;
        private long seen;

        Rule(long key, String call, Pattern file, long nth, long times, String error) {
            this.key = key;
            this.call = call;
            this.file = file;
            this.nth = nth;
            this.times = times;
            this.error = error;
        }
    }

    /** Makes the rules for the files in a folder; none yet. */
    Failures(Path data) {
        this.data = data;
    }

    /** Lets calls fail from now on. {@code file} is an expression for the whole path in the folder. */
    void add(long key, String call, String file, long nth, long times, String error) {
        rules.add(new Rule(key, call, Pattern.compile(file), nth, times, error));
    }

    /** Takes the rules of another disk. */
    void take(Failures other) {
        rules.addAll(other.rules);
    }

    /** Ends the rules of a key. */
    void remove(long key) {
        rules.removeIf(rule -> rule.key == key);
    }

    /** Notes that an object leads to a file. */
    void opened(Path path, Object handle) {
        opened.put(handle, path);
    }

    /** Notes that an object leads to the same file as another one. */
    void same(Object known, Object handle) {
        Path path = opened.get(known);
        if (path != null) {
            opened.put(handle, path);
        }
    }

    /** Notes that nothing leads to a file any more. */
    void closeAll() {
        opened.clear();
    }

    /** Counts a call on an open file, and lets it fail by a rule. */
    void check(String call, Object handle) throws IOException {
        if (!rules.isEmpty() && opened.get(handle) != null) {
            check(call, opened.get(handle), opened.get(handle));
        }
    }

    /** Counts a call on a file that has two names at most, and lets it fail by a rule. */
    void check(String call, Path one, Path other) throws IOException {
        IOException refused = null;
        for (Rule rule : rules) {
            Path path = rule.call.equals(call) ? matching(rule, one, other) : null;
            if (path == null) {
                continue;
            }
            long number = ++rule.seen;
            if (number >= rule.nth && number - rule.nth < rule.times) {
                String file = data.relativize(path).toString().replaceAll("\\p{Cntrl}", "?");
                Scheduler.get().output().refused(data.getParent().getFileName().toString(), rule.key, call + "\t" + number + "\t" + file);
                refused = new IOException(rule.error);
            }
        }
        if (refused != null) {
            throw refused;
        }
    }

    private Path matching(Rule rule, Path... paths) {
        for (Path path : paths) {
            if (path.startsWith(data) && rule.file.matcher(data.relativize(path).toString()).matches()) {
                return path;
            }
        }
        return null;
    }
}
