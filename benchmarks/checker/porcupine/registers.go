package main

import (
	"strings"

	"github.com/anishathalye/porcupine"
)

type registerInput struct {
	f    string
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
		case "read":
			return out.unknown || out.value == s, s
		case "write":
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

func parseRegister(op recorded) (interface{}, interface{}) {
	a, b := op.argument, "nil"
	if op.f == "cas" {
		a, b, _ = strings.Cut(op.argument, ",")
	}
	out := registerOutput{failed: op.failed, unknown: op.crashed}
	if op.f == "read" && !op.crashed {
		out.value = number(op.result)
	}
	return registerInput{op.f, number(a), number(b)}, out
}
