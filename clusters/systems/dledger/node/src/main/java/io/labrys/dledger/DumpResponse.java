package io.labrys.dledger;

import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineResponse;
import java.util.Map;

/** All registers of one replica, at one log position. */
public final class DumpResponse extends UserDefineResponse {
    private Map<String, Long> values;
    private long appliedIndex = -1;

    public Map<String, Long> getValues() {
        return values;
    }

    public void setValues(Map<String, Long> values) {
        this.values = values;
    }

    public long getAppliedIndex() {
        return appliedIndex;
    }

    public void setAppliedIndex(long appliedIndex) {
        this.appliedIndex = appliedIndex;
    }
}
