package io.labrys.dledger.serve;

/** A node's view of itself. The base fields {@code term} and {@code leaderId} are its current term and leader. */
public class StatusResponse extends NodeResponse {
    private String role;
    private long committedIndex;
    private long appliedIndex;
    private long appliedTerm;
    private long ledgerEndIndex;
    private long ledgerEndTerm;
    private long ledgerBeforeBeginIndex;
    private long readyTerm;
    private String transferee;
    private int registers;
    private long snapshotIndex;
    private long snapshotsSaved;
    private long snapshotsLoaded;
    private long repairedAnswers;
    private long repeatedEntries;
    private long foreignEntries;
    private int waitingWrites;
    private long uptimeMillis;
    private long wallClockMillis;

    /** Returns leader, follower, candidate or unknown. */
    public String getRole() {
        return role;
    }

    /** Sets {@link #getRole}. */
    public void setRole(String role) {
        this.role = role;
    }

    /** Returns the commit index that this node knows; -1 if it knows none, as after a restart. */
    public long getCommittedIndex() {
        return committedIndex;
    }

    /** Sets {@link #getCommittedIndex}. */
    public void setCommittedIndex(long committedIndex) {
        this.committedIndex = committedIndex;
    }

    /** Returns the last index its state machine has applied, the library's own entries included; -1 if there is none. */
    public long getAppliedIndex() {
        return appliedIndex;
    }

    /** Sets {@link #getAppliedIndex}. */
    public void setAppliedIndex(long appliedIndex) {
        this.appliedIndex = appliedIndex;
    }

    /** Returns the term of that entry. */
    public long getAppliedTerm() {
        return appliedTerm;
    }

    /** Sets {@link #getAppliedTerm}. */
    public void setAppliedTerm(long appliedTerm) {
        this.appliedTerm = appliedTerm;
    }

    /** Returns the last index in its log; -1 if the log is empty. */
    public long getLedgerEndIndex() {
        return ledgerEndIndex;
    }

    /** Sets {@link #getLedgerEndIndex}. */
    public void setLedgerEndIndex(long ledgerEndIndex) {
        this.ledgerEndIndex = ledgerEndIndex;
    }

    /** Returns the term of that entry. */
    public long getLedgerEndTerm() {
        return ledgerEndTerm;
    }

    /** Sets {@link #getLedgerEndTerm}. */
    public void setLedgerEndTerm(long ledgerEndTerm) {
        this.ledgerEndTerm = ledgerEndTerm;
    }

    /** Returns the index before the first one in its log; -1 if the log was never truncated. */
    public long getLedgerBeforeBeginIndex() {
        return ledgerBeforeBeginIndex;
    }

    /** Sets {@link #getLedgerBeforeBeginIndex}. */
    public void setLedgerBeforeBeginIndex(long ledgerBeforeBeginIndex) {
        this.ledgerBeforeBeginIndex = ledgerBeforeBeginIndex;
    }

    /** Returns the term in which it leads and has committed an entry of its term; -1 if there is none. */
    public long getReadyTerm() {
        return readyTerm;
    }

    /** Sets {@link #getReadyTerm}. */
    public void setReadyTerm(long readyTerm) {
        this.readyTerm = readyTerm;
    }

    /** Returns the member that it transfers the leadership to; null if there is no transfer. */
    public String getTransferee() {
        return transferee;
    }

    /** Sets {@link #getTransferee}. */
    public void setTransferee(String transferee) {
        this.transferee = transferee;
    }

    /** Returns the number of its registers. */
    public int getRegisters() {
        return registers;
    }

    /** Sets {@link #getRegisters}. */
    public void setRegisters(int registers) {
        this.registers = registers;
    }

    /** Returns the last index of its latest snapshot; -1 if there is none or snapshots are off. */
    public long getSnapshotIndex() {
        return snapshotIndex;
    }

    /** Sets {@link #getSnapshotIndex}. */
    public void setSnapshotIndex(long snapshotIndex) {
        this.snapshotIndex = snapshotIndex;
    }

    /** Returns the number of snapshots that this process has saved. */
    public long getSnapshotsSaved() {
        return snapshotsSaved;
    }

    /** Sets {@link #getSnapshotsSaved}. */
    public void setSnapshotsSaved(long snapshotsSaved) {
        this.snapshotsSaved = snapshotsSaved;
    }

    /** Returns the number of snapshots that this process has loaded. */
    public long getSnapshotsLoaded() {
        return snapshotsLoaded;
    }

    /** Sets {@link #getSnapshotsLoaded}. */
    public void setSnapshotsLoaded(long snapshotsLoaded) {
        this.snapshotsLoaded = snapshotsLoaded;
    }

    /** Returns the number of answers that the library lost and this node restored. */
    public long getRepairedAnswers() {
        return repairedAnswers;
    }

    /** Sets {@link #getRepairedAnswers}. */
    public void setRepairedAnswers(long repairedAnswers) {
        this.repairedAnswers = repairedAnswers;
    }

    /** Returns the number of entries that the library has delivered again. */
    public long getRepeatedEntries() {
        return repeatedEntries;
    }

    /** Sets {@link #getRepeatedEntries}. */
    public void setRepeatedEntries(long repeatedEntries) {
        this.repeatedEntries = repeatedEntries;
    }

    /** Returns the number of entries in the log that were no commands. */
    public long getForeignEntries() {
        return foreignEntries;
    }

    /** Sets {@link #getForeignEntries}. */
    public void setForeignEntries(long foreignEntries) {
        this.foreignEntries = foreignEntries;
    }

    /** Returns the number of writes that wait for their answer. */
    public int getWaitingWrites() {
        return waitingWrites;
    }

    /** Sets {@link #getWaitingWrites}. */
    public void setWaitingWrites(int waitingWrites) {
        this.waitingWrites = waitingWrites;
    }

    /** Returns the age of this process. */
    public long getUptimeMillis() {
        return uptimeMillis;
    }

    /** Sets {@link #getUptimeMillis}. */
    public void setUptimeMillis(long uptimeMillis) {
        this.uptimeMillis = uptimeMillis;
    }

    /** Returns the wall clock of this process, in milliseconds since 1970. */
    public long getWallClockMillis() {
        return wallClockMillis;
    }

    /** Sets {@link #getWallClockMillis}. */
    public void setWallClockMillis(long wallClockMillis) {
        this.wallClockMillis = wallClockMillis;
    }
}
