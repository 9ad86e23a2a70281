/** Waits for another thread in a loop that makes no objects, as queues without locks do. Prints for how long. */
class Spins {
    private static volatile boolean isSet;

    public static void main(String[] arguments) throws InterruptedException {
        Thread setter = new Thread(() -> {
            try {
                Thread.sleep(2000);
            } catch (InterruptedException error) {
                throw new AssertionError(error);
            }
            isSet = true;
        });
        setter.start();
        long began = System.nanoTime();
        while (!isSet) {
            Thread.onSpinWait();
        }
        System.out.println((System.nanoTime() - began) / 1_000_000 + " ms");
        setter.join();
    }
}
