package main

import (
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

type listInput struct {
	read          bool
	length, value int
}

type listOutput struct {
	items            []int
	refused, unknown bool
}

var casList = porcupine.Model{
	Init: func() interface{} { return []int{} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		s, in, out := state.([]int), input.(listInput), output.(listOutput)
		if in.read {
			return out.unknown || slices.Equal(out.items, s), s
		}
		if in.length != len(s) {
			return out.refused || out.unknown, s
		}
		if out.refused {
			return false, s
		}
		return true, append(slices.Clip(s), in.value)
	},
	Equal: func(one, other interface{}) bool { return slices.Equal(one.([]int), other.([]int)) },
}

func numbers(text string) []int {
	var values []int
	if text != "" {
		for _, part := range strings.Split(text, ",") {
			values = append(values, number(part))
		}
	}
	return values
}

func parseList(op recorded) (interface{}, interface{}) {
	out := listOutput{refused: op.failed, unknown: op.crashed}
	if op.f == "read" {
		out.items = numbers(op.result)
		return listInput{read: true}, out
	}
	arguments := numbers(op.argument)
	return listInput{length: arguments[0], value: arguments[1]}, out
}
