// Checks histories with porcupine and prints one line for each: name, verdict, seconds of the check alone.
//
// A history is a file of lines separated by tabs: first its model (cas-register or kv), the time limit in seconds, and how
// often to repeat; then for each operation: process, start, end (or -1 if it never returned), f, argument, argument, result.
// Crashed operations return after everything else with an unknown result, as porcupine has no other way to say it.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const none = -1

type registerInput struct {
	f    byte
	a, b int
}

type registerOutput struct {
	value   int
	failed  bool
	unknown bool
}

var register = porcupine.Model{
	Init: func() interface{} { return none },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		s, in, out := state.(int), input.(registerInput), output.(registerOutput)
		switch in.f {
		case 'r':
			return out.unknown || out.value == s, s
		case 'w':
			return true, in.a
		default:
			if out.failed {
				return s != in.a, s
			}
			if s == in.a {
				return true, in.b
			}
			return out.unknown, s
		}
	},
}

type kvInput struct {
	f          byte
	key, value string
}

type kvOutput struct {
	value   string
	unknown bool
}

func kvStep(s string, in kvInput, out kvOutput) (bool, string) {
	switch in.f {
	case 'g':
		return out.unknown || out.value == s, s
	case 'p':
		return true, in.value
	default:
		return true, s + in.value
	}
}

var kvPartitioned = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := make(map[string][]porcupine.Operation)
		for _, op := range history {
			key := op.Input.(kvInput).key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() interface{} { return "" },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		return kvStep(state.(string), input.(kvInput), output.(kvOutput))
	},
}

// The whole store as one object: what porcupine calls unpartitioned.
var kvWhole = porcupine.Model{
	Init: func() interface{} { return map[string]string{} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		store, in := state.(map[string]string), input.(kvInput)
		ok, next := kvStep(store[in.key], in, output.(kvOutput))
		if in.f == 'g' || !ok {
			return ok, store
		}
		copied := make(map[string]string, len(store)+1)
		for key, value := range store {
			copied[key] = value
		}
		copied[in.key] = next
		return true, copied
	},
	Equal: func(one, other interface{}) bool {
		a, b := one.(map[string]string), other.(map[string]string)
		if len(a) != len(b) {
			return false
		}
		for key, value := range a {
			if found, ok := b[key]; !ok || found != value {
				return false
			}
		}
		return true
	},
}

func number(text string) int {
	if text == "nil" || text == "" {
		return none
	}
	value, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return value
}

func read(path string) (porcupine.Model, []porcupine.Operation, time.Duration, int) {
	file, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 1<<20), 1<<26)
	lines.Scan()
	head := strings.Split(lines.Text(), "\t")
	models := map[string]porcupine.Model{"cas-register": register, "kv": kvPartitioned, "kv-whole": kvWhole}
	limit, err := strconv.ParseFloat(head[1], 64)
	if err != nil {
		panic(err)
	}
	var history []porcupine.Operation
	var open []int
	var last int64
	for lines.Scan() {
		cells := strings.Split(lines.Text(), "\t")
		start, end := int64(number(cells[1])), int64(number(cells[2]))
		op := porcupine.Operation{ClientId: number(cells[0]), Call: start, Return: end}
		crashed := end == none
		if head[0] == "cas-register" {
			op.Input = registerInput{cells[3][0], number(cells[4]), number(cells[5])}
			failed := cells[6] == "fail"
			out := registerOutput{failed: failed, unknown: crashed}
			if !failed && !crashed {
				out.value = number(cells[6])
			}
			op.Output = out
		} else {
			op.Input = kvInput{cells[3][0], cells[4], cells[5]}
			op.Output = kvOutput{cells[6], crashed}
		}
		if crashed {
			open = append(open, len(history))
		}
		last = max(last, start, end)
		history = append(history, op)
	}
	if err := lines.Err(); err != nil {
		panic(err)
	}
	for i, place := range open {
		history[place].Return = last + 1 + int64(i)
	}
	return models[head[0]], history, time.Duration(limit * float64(time.Second)), number(head[2])
}

func main() {
	for _, path := range os.Args[1:] {
		model, history, limit, repeats := read(path)
		best, verdict := time.Duration(1<<62), ""
		for range repeats {
			began := time.Now()
			result := porcupine.CheckOperationsTimeout(model, history, limit)
			if taken := time.Since(began); taken < best {
				best = taken
			}
			verdict = map[porcupine.CheckResult]string{
				porcupine.Ok: "valid", porcupine.Illegal: "invalid", porcupine.Unknown: "unknown",
			}[result]
			if best > limit/4 {
				break
			}
		}
		fmt.Printf("%s\t%s\t%.9f\n", path, verdict, best.Seconds())
	}
}
