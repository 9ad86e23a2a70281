package io.labrys.dledger.serve;

/** The answer to a {@link KvRequest}. Without code 200 only the base fields count. */
public class KvResponse extends NodeResponse {
    private Boolean applied;
    private Boolean found;
    private Long value;
    private Long index;

    /** Returns whether put or cas took effect in the state machine; null for get. */
    public Boolean getApplied() {
        return applied;
    }

    /** Sets {@link #getApplied}. */
    public void setApplied(Boolean applied) {
        this.applied = applied;
    }

    /** Returns whether there is such a register. JSON omits a null value, so a missing value alone would be ambiguous. */
    public Boolean getFound() {
        return found;
    }

    /** Sets {@link #getFound}. */
    public void setFound(Boolean found) {
        this.found = found;
    }

    /** Returns the register's value after the operation; null if there is no such register. */
    public Long getValue() {
        return value;
    }

    /** Sets {@link #getValue}. */
    public void setValue(Long value) {
        this.value = value;
    }

    /** Returns the log index of a write. */
    public Long getIndex() {
        return index;
    }

    /** Sets {@link #getIndex}. */
    public void setIndex(Long index) {
        this.index = index;
    }
}
