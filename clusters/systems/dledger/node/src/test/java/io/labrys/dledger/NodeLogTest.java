package io.labrys.dledger;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.Test;

class NodeLogTest {
    private static String format(Level level, String message, Throwable thrown) {
        return new NodeLog.Lines(NodeLog.TIME).format(entry(level, message, thrown));
    }

    private static LogRecord entry(Level level, String message, Throwable thrown) {
        LogRecord entry = new LogRecord(level, message);
        entry.setLoggerName("a.b.Thing");
        entry.setThrown(thrown);
        return entry;
    }

    /** A record is one line with UTC time, level, thread and logger. */
    @Test
    void line() {
        String line = format(Level.SEVERE, "it broke", null);
        assertTrue(line.matches("\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z ERROR \\[[^]]+] Thing: it broke\n"), line);
    }

    /** A simulated node has no times: the simulator puts its own before the lines. */
    @Test
    void withoutTime() {
        String line = new NodeLog.Lines(null).format(entry(Level.INFO, "it works", null));
        assertTrue(line.matches("INFO  \\[[^]]+] Thing: it works\n"), line);
    }

    /** A deep stack trace is shortened, with its causes. */
    @Test
    void trace() {
        StackTraceElement[] deep = new StackTraceElement[500];
        Arrays.fill(deep, new StackTraceElement("C", "m", "C.java", 1));
        Throwable error = new IllegalStateException("outer", new IllegalArgumentException("inner"));
        error.setStackTrace(deep);
        long lines = format(Level.WARNING, "m", error).lines().count();
        assertTrue(lines < 20, lines + " lines");
        error.setStackTrace(Arrays.copyOf(deep, 1));
        String text = format(Level.WARNING, "m", error);
        assertTrue(text.contains("caused by java.lang.IllegalArgumentException: inner"), text);
        assertEquals(1, text.lines().filter(line -> line.contains("at C.m")).count());
    }
}
