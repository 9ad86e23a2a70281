package main

import (
	"strings"

	"github.com/anishathalye/porcupine"
)

const storeKeys = 4

type keysInput struct {
	f                  string
	key, expected, new int
}

type keysOutput struct {
	value            int
	refused, unknown bool
}

// Keys with numbers, as one object.
var keys = porcupine.Model{
	Init: func() interface{} { return [storeKeys]int{} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		s, in, out := state.([storeKeys]int), input.(keysInput), output.(keysOutput)
		if in.f == "get" {
			return out.unknown || out.value == s[in.key], s
		}
		matches := in.f == "put" || s[in.key] == in.expected
		if in.f == "cas" && !out.unknown && out.refused == matches {
			return false, s
		}
		if matches {
			s[in.key] = in.new
		}
		return true, s
	},
}

func parseKeys(op recorded) (interface{}, interface{}) {
	cells := strings.Split(op.argument, ",")
	in := keysInput{f: op.f, key: number(cells[0])}
	out := keysOutput{unknown: op.crashed, refused: op.result == "False"}
	switch {
	case op.f == "get" && !op.crashed:
		out.value = number(op.result)
	case op.f == "put":
		in.new = number(cells[1])
	case op.f == "cas":
		in.expected, in.new = number(cells[1]), number(cells[2])
	}
	return in, out
}
