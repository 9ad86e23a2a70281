package main

import (
	"strings"

	"github.com/anishathalye/porcupine"
)

const (
	accounts = 5
	balance  = 100
)

type bankInput struct {
	read                   bool
	source, target, amount int
}

type bankOutput struct {
	held             [accounts]int
	refused, unknown bool
}

var bank = porcupine.Model{
	Init: func() interface{} {
		var held [accounts]int
		for i := range held {
			held[i] = balance
		}
		return held
	},
	Step: func(state, input, output interface{}) (bool, interface{}) {
		s, in, out := state.([accounts]int), input.(bankInput), output.(bankOutput)
		if in.read {
			return out.unknown || (in.source == none && out.held == s) || (in.source != none && out.held[0] == s[in.source]), s
		}
		enough := s[in.source] >= in.amount
		if !out.unknown && out.refused == enough {
			return false, s
		}
		if enough {
			s[in.source] -= in.amount
			s[in.target] += in.amount
		}
		return true, s
	},
}

func parseBank(op recorded) (interface{}, interface{}) {
	in := bankInput{read: op.f == "read", source: none}
	out := bankOutput{unknown: op.crashed, refused: op.result == "False"}
	if in.read {
		in.source = number(op.argument)
		if !op.crashed {
			for i, cell := range strings.Split(op.result, ",") {
				out.held[i] = number(cell)
			}
		}
		return in, out
	}
	cells := strings.Split(op.argument, ",")
	in.source, in.target, in.amount = number(cells[0]), number(cells[1]), number(cells[2])
	return in, out
}
