package io.labrys.dledger.serve;

import java.util.Map;

/** All registers of a node, and the log index of this state. */
public class DumpResponse extends NodeResponse {
    private Long appliedIndex;
    private Map<String, Long> registers;

    /** Returns the log index of the registers. */
    public Long getAppliedIndex() {
        return appliedIndex;
    }

    /** Sets {@link #getAppliedIndex}. */
    public void setAppliedIndex(Long appliedIndex) {
        this.appliedIndex = appliedIndex;
    }

    /** Returns the value of each key. */
    public Map<String, Long> getRegisters() {
        return registers;
    }

    /** Sets {@link #getRegisters}. */
    public void setRegisters(Map<String, Long> registers) {
        this.registers = registers;
    }
}
