package io.labrys.dledger.serve;

import java.util.Map;

/** All registers of a node and the log index at which they stand. */
public class DumpResponse extends NodeResponse {
    private Long appliedIndex;
    private Map<String, Long> registers;

    /** Returns the index that the registers belong to. */
    public Long getAppliedIndex() {
        return appliedIndex;
    }

    /** Sets {@link #getAppliedIndex}. */
    public void setAppliedIndex(Long appliedIndex) {
        this.appliedIndex = appliedIndex;
    }

    /** Returns key to value. */
    public Map<String, Long> getRegisters() {
        return registers;
    }

    /** Sets {@link #getRegisters}. */
    public void setRegisters(Map<String, Long> registers) {
        this.registers = registers;
    }
}
