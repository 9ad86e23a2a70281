package io.labrys.simjvm.run;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.ZoneId;
import java.time.ZoneOffset;

/**
 * The wall clock of the node, as a {@link Clock}. It takes the place of the clocks of the JDK, which read the time of the machine.
 *
 * <p>The weaver puts these methods in the place of the methods of {@link Clock} with the same names. The default zone is UTC on all
 * machines.
 */
public final class SimClock extends Clock {
    private static final Duration SECOND = Duration.ofSeconds(1);
    private static final Duration MINUTE = Duration.ofMinutes(1);

    private final ZoneId zone;

    private SimClock(ZoneId zone) {
        this.zone = zone;
    }

    public static Clock systemUTC() {
        return new SimClock(ZoneOffset.UTC);
    }

    public static Clock systemDefaultZone() {
        return systemUTC();
    }

    public static Clock system(ZoneId zone) {
        return new SimClock(zone);
    }

    public static Clock tickMillis(ZoneId zone) {
        return new SimClock(zone); // it counts milliseconds
    }

    public static Clock tickSeconds(ZoneId zone) {
        return tick(new SimClock(zone), SECOND);
    }

    public static Clock tickMinutes(ZoneId zone) {
        return tick(new SimClock(zone), MINUTE);
    }

    /** Takes the place of {@link InstantSource#system}. */
    public static InstantSource source() {
        return systemUTC();
    }

    @Override
    public ZoneId getZone() {
        return zone;
    }

    @Override
    public Clock withZone(ZoneId other) {
        return new SimClock(other);
    }

    @Override
    public long millis() {
        return Hooks.currentTimeMillis();
    }

    @Override
    public Instant instant() {
        return Hooks.instant();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof SimClock clock && zone.equals(clock.zone);
    }

    @Override
    public int hashCode() {
        return zone.hashCode();
    }
}
