package main

import (
	"strings"

	"github.com/anishathalye/porcupine"
)

type automatonOutput struct {
	answer  int
	unknown bool
}

// A table of states, separated by semicolons: for each kind of operation the next state and the answer.
func automaton(made string) porcupine.Model {
	var table [][]int
	for _, row := range strings.Split(made, ";") {
		table = append(table, numbers(row))
	}
	return porcupine.Model{
		Init: func() interface{} { return 0 },
		Step: func(state, input, output interface{}) (bool, interface{}) {
			row, kind, out := table[state.(int)], input.(int), output.(automatonOutput)
			return out.unknown || out.answer == row[2*kind+1], row[2*kind]
		},
	}
}

func parseAutomaton(op recorded) (interface{}, interface{}) {
	out := automatonOutput{unknown: op.crashed}
	if !op.crashed {
		out.answer = number(op.result)
	}
	return number(op.f), out
}
