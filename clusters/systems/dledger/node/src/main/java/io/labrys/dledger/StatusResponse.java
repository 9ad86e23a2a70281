package io.labrys.dledger;

import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineResponse;

/** A node's own view of itself; term and leader stand in the base members. Indexes are -1 where there is nothing yet. */
public final class StatusResponse extends UserDefineResponse {
    private String role;
    private long committedIndex;
    private long appliedIndex;
    private long ledgerBeforeBeginIndex;
    private long ledgerEndIndex;
    private long ledgerEndTerm;
    private long readyTerm;
    private String transferee;
    private long snapshotsSaved;
    private long snapshotsLoaded;
    private int keys;
    private long uptimeMs;

    /** Returns {@code leader}, {@code follower}, {@code candidate} or {@code unknown}. */
    public String getRole() {
        return role;
    }

    public void setRole(String role) {
        this.role = role;
    }

    public long getCommittedIndex() {
        return committedIndex;
    }

    public void setCommittedIndex(long committedIndex) {
        this.committedIndex = committedIndex;
    }

    public long getAppliedIndex() {
        return appliedIndex;
    }

    public void setAppliedIndex(long appliedIndex) {
        this.appliedIndex = appliedIndex;
    }

    /** Returns the last index that snapshots have trimmed from the log. */
    public long getLedgerBeforeBeginIndex() {
        return ledgerBeforeBeginIndex;
    }

    public void setLedgerBeforeBeginIndex(long ledgerBeforeBeginIndex) {
        this.ledgerBeforeBeginIndex = ledgerBeforeBeginIndex;
    }

    public long getLedgerEndIndex() {
        return ledgerEndIndex;
    }

    public void setLedgerEndIndex(long ledgerEndIndex) {
        this.ledgerEndIndex = ledgerEndIndex;
    }

    public long getLedgerEndTerm() {
        return ledgerEndTerm;
    }

    public void setLedgerEndTerm(long ledgerEndTerm) {
        this.ledgerEndTerm = ledgerEndTerm;
    }

    /** Returns the term for which this leader serves ReadIndex reads, or -1. */
    public long getReadyTerm() {
        return readyTerm;
    }

    public void setReadyTerm(long readyTerm) {
        this.readyTerm = readyTerm;
    }

    /** Returns the node to which leadership is being transferred, if it is. */
    public String getTransferee() {
        return transferee;
    }

    public void setTransferee(String transferee) {
        this.transferee = transferee;
    }

    public long getSnapshotsSaved() {
        return snapshotsSaved;
    }

    public void setSnapshotsSaved(long snapshotsSaved) {
        this.snapshotsSaved = snapshotsSaved;
    }

    public long getSnapshotsLoaded() {
        return snapshotsLoaded;
    }

    public void setSnapshotsLoaded(long snapshotsLoaded) {
        this.snapshotsLoaded = snapshotsLoaded;
    }

    /** Returns how many registers hold a value. */
    public int getKeys() {
        return keys;
    }

    public void setKeys(int keys) {
        this.keys = keys;
    }

    public long getUptimeMs() {
        return uptimeMs;
    }

    public void setUptimeMs(long uptimeMs) {
        this.uptimeMs = uptimeMs;
    }
}
