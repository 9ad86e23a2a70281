// Checks histories with porcupine and prints one line for each: name, verdict, seconds of the check alone.
//
// A history is a file of lines separated by tabs: first its model, what the model is made of (empty for most), the time limit
// in seconds, and how often to repeat; then for each operation: process, start, end (or -1 if it never returned), f, the
// argument, and the result, which is `fail` for what was refused. The parts of an argument or a result are separated by commas.
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

// One operation as the file has it.
type recorded struct {
	f, argument, result string
	failed, crashed     bool
}

// A model, and how its operations are read.
type family struct {
	model porcupine.Model
	parse func(recorded) (input, output interface{})
}

func familyOf(name, made string) family {
	switch name {
	case "cas-register":
		return family{register, parseRegister}
	case "kv":
		return family{kvPartitioned, parseStore}
	case "kv-whole":
		return family{kvWhole, parseStore}
	case "max-register":
		return family{maxRegister, parseMaxRegister}
	case "bounded-stack":
		return family{boundedStack, parseStack}
	case "lease-lock":
		return family{leaseLock, parseLease}
	case "two-phase-commit":
		return family{twoPhaseCommit, parseCommit}
	case "cas-list":
		return family{casList, parseList}
	case "bank":
		return family{bank, parseBank}
	case "store":
		return family{keys, parseKeys}
	case "automaton":
		return family{automaton(made), parseAutomaton}
	}
	panic("there is no model " + name)
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
	family := familyOf(head[0], head[1])
	limit, err := strconv.ParseFloat(head[2], 64)
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
		op.Input, op.Output = family.parse(recorded{cells[3], cells[4], cells[5], cells[5] == "fail", crashed})
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
	return family.model, history, time.Duration(limit * float64(time.Second)), number(head[3])
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
