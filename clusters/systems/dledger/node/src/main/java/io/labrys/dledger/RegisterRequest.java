package io.labrys.dledger;

import io.openmessaging.storage.dledger.protocol.userdefine.UserDefineRequest;

/** A read or a change of one register. Read by fastjson: public accessors, and a constructor without arguments. */
public final class RegisterRequest extends UserDefineRequest {
    public static final int TYPE = 1;

    private String op;
    private String key;
    private Long value;
    private Long expected;
    private String readMode;

    @Override
    public int getRequestTypeCode() {
        return TYPE;
    }

    /** Returns {@code get}, {@code put} or {@code cas}. */
    public String getOp() {
        return op;
    }

    public void setOp(String op) {
        this.op = op;
    }

    public String getKey() {
        return key;
    }

    public void setKey(String key) {
        this.key = key;
    }

    /** Returns, for put and cas, the new value. */
    public Long getValue() {
        return value;
    }

    public void setValue(Long value) {
        this.value = value;
    }

    /** Returns, for cas, the value that the register must hold. */
    public Long getExpected() {
        return expected;
    }

    public void setExpected(Long expected) {
        this.expected = expected;
    }

    /** Returns, for get, {@code read-index}, {@code raft-log} or {@code unsafe}. */
    public String getReadMode() {
        return readMode;
    }

    public void setReadMode(String readMode) {
        this.readMode = readMode;
    }
}
