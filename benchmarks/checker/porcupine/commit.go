package main

import (
	"strings"

	"github.com/anishathalye/porcupine"
)

const participants = 3

// A coordinator: the number of the transaction, its phase, and the vote of each participant.
type commitState struct {
	number int
	phase  string
	votes  [participants]string
}

type commitInput struct {
	f           string
	transaction int
	participant int
	vote        string
}

type commitOutput struct {
	number           int
	phase            string
	refused, unknown bool
}

var twoPhaseCommit = porcupine.Model{
	Init: func() interface{} { return commitState{phase: "idle"} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		s, in, out := state.(commitState), input.(commitInput), output.(commitOutput)
		if in.f == "read" {
			return out.unknown || (out.number == s.number && out.phase == s.phase), s
		}
		next, refused := afterCommit(s, in)
		if refused {
			return out.refused || out.unknown, s
		}
		return !out.refused && (in.f != "begin" || out.unknown || out.number == next.number), next
	},
}

func afterCommit(s commitState, in commitInput) (next commitState, refused bool) {
	if in.f == "begin" {
		return commitState{number: s.number + 1, phase: "voting"}, s.phase == "voting"
	}
	if in.transaction != s.number || s.phase != "voting" {
		return s, true
	}
	switch in.f {
	case "vote":
		if s.votes[in.participant] != "" {
			return s, true
		}
		s.votes[in.participant] = in.vote
	case "abort":
		s.phase = "aborted"
	default:
		if s.votes != [participants]string{"yes", "yes", "yes"} {
			return s, true
		}
		s.phase = "committed"
	}
	return s, false
}

func parseCommit(op recorded) (interface{}, interface{}) {
	in := commitInput{f: op.f}
	if op.f == "vote" {
		parts := strings.Split(op.argument, ",")
		in.transaction, in.participant, in.vote = number(parts[0]), number(parts[1]), parts[2]
	} else {
		in.transaction = number(op.argument)
	}
	out := commitOutput{refused: op.failed, unknown: op.crashed}
	if !op.failed && !op.crashed && (op.f == "begin" || op.f == "read") {
		first, phase, _ := strings.Cut(op.result, ",")
		out.number, out.phase = number(first), phase
	}
	return in, out
}
