package main

import "github.com/anishathalye/porcupine"

type maxInput struct {
	read  bool
	value int
}

type maxOutput struct {
	value   int
	unknown bool
}

var maxRegister = porcupine.Model{
	Init: func() interface{} { return 0 },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		s, in, out := state.(int), input.(maxInput), output.(maxOutput)
		if in.read {
			return out.unknown || out.value == s, s
		}
		return true, max(s, in.value)
	},
}

func parseMaxRegister(op recorded) (interface{}, interface{}) {
	in := maxInput{op.f == "read", number(op.argument)}
	out := maxOutput{unknown: op.crashed}
	if in.read && !op.crashed {
		out.value = number(op.result)
	}
	return in, out
}
