package io.labrys.rocketmq;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.logging.org.slf4j.ILoggerFactory;
import org.apache.rocketmq.logging.org.slf4j.IMarkerFactory;
import org.apache.rocketmq.logging.org.slf4j.Logger;
import org.apache.rocketmq.logging.org.slf4j.Marker;
import org.apache.rocketmq.logging.org.slf4j.event.Level;
import org.apache.rocketmq.logging.org.slf4j.helpers.BasicMarkerFactory;
import org.apache.rocketmq.logging.org.slf4j.helpers.LegacyAbstractLogger;
import org.apache.rocketmq.logging.org.slf4j.helpers.MessageFormatter;
import org.apache.rocketmq.logging.org.slf4j.helpers.NOPMDCAdapter;
import org.apache.rocketmq.logging.org.slf4j.spi.MDCAdapter;
import org.apache.rocketmq.logging.org.slf4j.spi.SLF4JServiceProvider;

/**
 * Gives RocketMQ's log to java.util.logging, from where the simulator takes it. On real nodes, RocketMQ's own copy of Logback writes it
 * to files.
 *
 * <p>Records below INFO are dropped. A line has the level, the thread, the logger and the message; the lines after it have the first
 * frames of an exception and its causes.
 */
public final class SimulatedLog implements SLF4JServiceProvider, ILoggerFactory {
    private static final int MAX_FRAMES = 12;

    private final Map<String, Logger> loggers = new ConcurrentHashMap<>();
    private final IMarkerFactory markers = new BasicMarkerFactory();

    @Override
    public void initialize() {
        // has nothing to prepare
    }

    @Override
    public ILoggerFactory getLoggerFactory() {
        return this;
    }

    @Override
    public IMarkerFactory getMarkerFactory() {
        return markers;
    }

    @Override
    public MDCAdapter getMDCAdapter() {
        return new NOPMDCAdapter();
    }

    @Override
    public String getRequestedApiVersion() {
        return "2.0";
    }

    @Override
    public Logger getLogger(String name) {
        return loggers.computeIfAbsent(name, Lines::new);
    }

    /** One logger. */
    private static final class Lines extends LegacyAbstractLogger {
        private static final long serialVersionUID = 1;

        Lines(String name) {
            this.name = name;
        }

        @Override
        public boolean isTraceEnabled() {
            return false;
        }

        @Override
        public boolean isDebugEnabled() {
            return false;
        }

        @Override
        public boolean isInfoEnabled() {
            return true;
        }

        @Override
        public boolean isWarnEnabled() {
            return true;
        }

        @Override
        public boolean isErrorEnabled() {
            return true;
        }

        @Override
        protected String getFullyQualifiedCallerName() {
            return null;
        }

        @Override
        protected void handleNormalizedLoggingCall(Level level, Marker marker, String pattern, Object[] arguments, Throwable thrown) {
            StringBuilder lines = new StringBuilder(200).append(level).append(" [").append(Thread.currentThread().getName()).append("] ")
                .append(name.substring(name.lastIndexOf('.') + 1)).append(": ")
                .append(MessageFormatter.basicArrayFormat(pattern, arguments));
            int frames = 0;
            for (Throwable error = thrown; error != null && frames < MAX_FRAMES; error = error.getCause()) {
                lines.append("\n  ").append(frames == 0 ? "" : "caused by ").append(error);
                for (StackTraceElement frame : error.getStackTrace()) {
                    if (frames++ >= MAX_FRAMES) {
                        break;
                    }
                    lines.append("\n    at ").append(frame);
                }
            }
            java.util.logging.Logger.getLogger(name).info(lines.toString());
        }
    }
}
