package main

import "github.com/anishathalye/porcupine"

// The holder's token, or 0, and the last token that was given.
type leaseState struct {
	holder, last int
}

type leaseInput struct {
	f     string
	token int
}

type leaseOutput struct {
	token            int
	refused, unknown bool
}

var leaseLock = porcupine.Model{
	Init: func() interface{} { return leaseState{} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		s, in, out := state.(leaseState), input.(leaseInput), output.(leaseOutput)
		switch in.f {
		case "expire":
			return true, leaseState{0, s.last}
		case "release":
			if s.holder != in.token {
				return out.refused || out.unknown, s
			}
			return !out.refused, leaseState{0, s.last}
		default:
			if s.holder != 0 {
				return out.refused || out.unknown, s
			}
			next := s.last + 1
			return out.unknown || (!out.refused && out.token == next), leaseState{next, next}
		}
	},
}

func parseLease(op recorded) (interface{}, interface{}) {
	out := leaseOutput{refused: op.failed, unknown: op.crashed}
	if op.f == "acquire" && !op.failed {
		out.token = number(op.result)
	}
	return leaseInput{op.f, number(op.argument)}, out
}
