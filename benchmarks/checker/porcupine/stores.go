package main

import (
	"strings"

	"github.com/anishathalye/porcupine"
)

type kvInput struct {
	f          string
	key, value string
}

type kvOutput struct {
	value   string
	unknown bool
}

func kvStep(s string, in kvInput, out kvOutput) (bool, string) {
	switch in.f {
	case "get":
		return out.unknown || out.value == s, s
	case "put":
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
		if in.f == "get" || !ok {
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

func parseStore(op recorded) (interface{}, interface{}) {
	key, value, _ := strings.Cut(op.argument, ",")
	return kvInput{op.f, key, value}, kvOutput{op.result, op.crashed}
}
