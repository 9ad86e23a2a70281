package main

import "github.com/anishathalye/porcupine"

const capacity = 4

type stackState struct {
	size  int
	items [capacity]int
}

type stackInput struct {
	push  bool
	value int
}

type stackOutput struct {
	value            int
	refused, unknown bool
}

var boundedStack = porcupine.Model{
	Init: func() interface{} { return stackState{} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		s, in, out := state.(stackState), input.(stackInput), output.(stackOutput)
		if (in.push && s.size == capacity) || (!in.push && s.size == 0) {
			return out.refused || out.unknown, s
		}
		if out.refused {
			return false, s
		}
		if in.push {
			s.items[s.size] = in.value
			s.size++
			return true, s
		}
		s.size--
		top := s.items[s.size]
		s.items[s.size] = 0
		return out.unknown || out.value == top, s
	},
}

func parseStack(op recorded) (interface{}, interface{}) {
	out := stackOutput{refused: op.failed, unknown: op.crashed}
	if op.f == "pop" && !op.failed {
		out.value = number(op.result)
	}
	return stackInput{op.f == "push", number(op.argument)}, out
}
