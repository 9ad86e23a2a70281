package io.labrys.dledger;

import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineResponse;

/** The answer to a {@link RegisterRequest}. Members that are null are left out of the JSON. */
public final class RegisterResponse extends UserDefineResponse {
    private Long value;
    private Boolean applied;

    /** Returns what the register held: read by a get, or after a put or cas. Null if it held nothing. */
    public Long getValue() {
        return value;
    }

    public void setValue(Long value) {
        this.value = value;
    }

    /** Returns, for put and cas, whether the register changed; null if the state machine's answer is not known. */
    public Boolean getApplied() {
        return applied;
    }

    public void setApplied(Boolean applied) {
        this.applied = applied;
    }
}
