;; Writes encoded.jepsen and encoded.edn, with Fressian's own encoder and the printer of Clojure:
;;   java -cp clojure-1.11.1.jar:spec.alpha-0.3.218.jar:core.specs.alpha-0.2.62.jar:data.fressian-1.0.0.jar:fressian-0.6.6.jar \
;;     clojure.main encode.clj .
;; The blocks are those that the documentation of jepsen.store.format describes, in the order in which a test writes them.
(ns encode
  (:require [clojure.data.fressian :as fressian] [clojure.datafy :refer [datafy]])
  (:import (java.io ByteArrayOutputStream File RandomAccessFile)
           (java.nio ByteBuffer)
           (java.util.zip CRC32)
           (org.fressian.handlers WriteHandler)))

(defrecord Op [index time type process f value])
(defrecord BlockRef [id])
(doseq [number (range 20)] (eval (read-string (str "(defrecord Record" number " [a])"))))
(def records (mapv #((resolve (symbol (str "->Record" %))) %) (range 20)))

(defn tagged [tag count members]
  {tag (reify WriteHandler
         (write [_ writer value]
           (.writeTag writer tag count)
           (doseq [member (members value)] (.writeObject writer member))))})

(def handlers
  (-> {clojure.lang.Atom (tagged "atom" 1 (comp vector deref))
       clojure.lang.PersistentHashSet (tagged "persistent-hash-set" 1 (comp vector seq))
       clojure.lang.PersistentTreeSet (tagged "persistent-sorted-set" 1 (comp vector seq))
       clojure.lang.MapEntry (tagged "map-entry" 2 (juxt key val))
       java.lang.Throwable (tagged "throwable" 1 (comp vector datafy))
       java.time.Instant (tagged "instant" 1 (comp vector str))
       BlockRef (tagged "block-ref" 1 (comp vector :id))
       java.lang.Byte {"byte" (reify WriteHandler (write [_ writer value] (.writeTag writer "byte" 1) (.writeInt writer (short value))))}
       Op {"jepsen.history.Op"
           (reify WriteHandler
             (write [_ writer op]
               (.writeTag writer "jepsen.history.Op" 7)
               (.writeInt writer (:index op))
               (.writeInt writer (:time op))
               (.writeObject writer (:type op) true)
               (.writeObject writer (:process op))
               (.writeObject writer (:f op) true)
               (.writeObject writer (:value op))
               (.writeObject writer (.__extmap ^Op op))))}}
      (->> (merge fressian/clojure-write-handlers))
      fressian/associative-lookup
      fressian/inheritance-lookup))

(defn encoded [& values]
  (let [bytes (ByteArrayOutputStream.) writer (fressian/create-writer bytes :handlers handlers)]
    (doseq [value values] (fressian/write-object writer value))
    (.close writer)
    (.toByteArray bytes)))

(defn numbers [& pairs]
  (let [buffer (ByteBuffer/allocate (* 8 (count pairs)))]
    (doseq [[bits number] (partition 2 pairs)] (if (= bits 32) (.putInt buffer (int number)) (.putLong buffer (long number))))
    (java.util.Arrays/copyOf (.array buffer) (.position buffer))))

(defn header ^ByteBuffer [kind length checksum]
  (doto (ByteBuffer/allocate 28) (.putLong 0 length) (.putInt 8 checksum) (.putShort 12 (short kind))))

(defn append! [^RandomAccessFile file kind ^bytes data]
  (let [place (.length file) length (+ 28 (alength data)) checksum (CRC32.)]
    (.update checksum data)
    (.update checksum (.array (header kind length 0)))
    (.seek file place)
    (.write file (.array (header kind length (unchecked-int (.getValue checksum)))))
    (.write file data)
    place))

(defn write-test! [path ops chunk test]
  (.delete (File. path))
  (let [file (RandomAccessFile. path "rw")
        places (atom {})
        put! (fn [id kind data] (swap! places assoc id (append! file kind data)))
        index! (fn [id root]
                 (swap! places assoc id (.length file))
                 (let [place (append! file 1 (apply numbers 32 root (mapcat (fn [[id at]] [32 id 64 at]) @places)))]
                   (.seek file 10)
                   (.writeLong file place)))]
    (.write file (.getBytes "JEPSEN"))
    (.writeInt file 1)
    (.writeLong file 0)
    (put! 1 2 (encoded nil))
    (put! 2 2 (encoded (assoc test :history (->BlockRef (int 1)))))
    (index! 3 2)
    (loop [chunks [] seen 0 parts (partition-all chunk ops) id 4]
      (when-let [part (first parts)]
        (put! id 4 (apply encoded part))
        (let [chunks (conj chunks [seen id]) seen (+ seen (count part))]
          (put! 1 5 (apply numbers 64 seen (mapcat (fn [[begin id]] [64 begin 32 id]) chunks)))
          (index! (inc id) 2)
          (recur chunks seen (rest parts) (+ id 2)))))
    (put! 1001 3 (byte-array (concat (numbers 32 0) (encoded {:stats {:count (count ops)}}))))
    (put! 1002 3 (byte-array (concat (numbers 32 1001) (encoded {:valid? true}))))
    (put! 1003 2 (encoded (assoc test :history (->BlockRef (int 1)) :results (->BlockRef (int 1002)))))
    (index! 1004 1003)
    (.close file)))

(def values
  [nil true false 0 1 -1 63 64 -64 4095 4096 -4096 524287 -524288 8388607 (bit-shift-left 1 40) (- (bit-shift-left 1 47))
   Long/MAX_VALUE Long/MIN_VALUE 123456789012345678901234567890N -123456789012345678901234567890N 5N (biginteger 7)
   (int 5) (short 6) 1.5 0.0 1.0 1e300 (float 2.5) (/ 1 3) (/ -22 7) (/ 123456789012345678901234567891N 2)
   3.14M 1000000000000000000000.5M 1E+3M
   "" "x" "1234567" "12345678" "h\u00e9\u20ac" (String. (Character/toChars 0x1F600)) (apply str (repeat 22000 \u20ac))
   :a :n/b :a 'sym 'n/sym \c \newline
   [] [1 2 3] (vec (range 7)) (vec (range 8)) (vec (range 100)) () '(1 2) (map inc [1 2 3]) (range 3) (subvec [1 2 3] 1)
   #{} #{1} #{1 2 3} (sorted-set) (sorted-set 3 1 2) #{[1] :k} (.keySet (java.util.HashMap. {1 2}))
   {} {:a 1} {"a" {"b" [1 {:c 2}]}} (sorted-map 1 2) (zipmap (range 40) (range 40)) {nil 1} {[1] 2} (java.util.HashMap. {:j 1})
   [[:append 1 2] [:r 3 [1 2 3]]] [[:r 3 nil]]
   #uuid "00000000-0000-0001-ffff-000000000001" #inst "2020-01-02T03:04:05.678-00:00" #inst "1965-01-02T03:04:05.678-00:00"
   (mapv #(keyword (str "ns" (mod % 40)) (str "k" %)) (range 300)) (mapv #(keyword (str "ns" (mod % 40)) (str "k" %)) (range 300))
   (reduce (fn [inner _] [inner]) 1 (range 100))])

(let [[folder] *command-line-args*
      ops (map-indexed (fn [index value]
                         (map->Op (merge {:index index :time (* 1000 index) :type (if (even? index) :invoke :ok) :process (mod index 5) :f :write :value value}
                                         (when (odd? index) {:error [:timeout "x"] :debug {:n index}}))))
                       values)
      test {:name "x" :start-time (java.time.Instant/parse "2026-01-02T03:04:05.678Z") :nodes ["n1" "n2"] :records records :again records
            :bytes (byte-array [1 2 3]) :many (byte-array 70000 (byte 7)) :longs (long-array [1 2]) :doubles (double-array [1 2])
            :ints (int-array [1]) :floats (float-array [1]) :booleans (boolean-array [true]) :objects (object-array [1 :a])
            :regex #"a+b" :uri (java.net.URI. "http://x/y") :byte (byte 5) :atom (atom {:x 1}) :error (ex-info "boom" {:a 1})}]
  (write-test! (str folder "/encoded.jepsen") ops 7 test)
  (spit (str folder "/encoded.edn") (apply str (map #(str (pr-str (into {} %)) "\n") ops))))
