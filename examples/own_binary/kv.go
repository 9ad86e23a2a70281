// A small key-value server: registers in memory and in a log, with one goroutine for each connection.
//
// kv PORT FOLDER [BUG]    A request is a line: `read KEY`, `write KEY VALUE` or `cas KEY OLD NEW`.
//
//	An answer is a line: `ok VALUE`, or `no VALUE` if a register holds another value than OLD.
//
// BUG plants a bug on purpose: no-sync, answer-before-sync or cas-in-two-steps.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

type store struct {
	lock   sync.Mutex
	values map[string]string
	file   *os.File
	bug    string
}

// open reads the log, and cuts off a last line that is not whole.
func open(folder, bug string) *store {
	path := filepath.Join(folder, "log")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	check(err)
	content, err := os.ReadFile(path)
	check(err)
	whole := bytes.LastIndexByte(content, '\n') + 1
	check(file.Truncate(int64(whole)))
	check(file.Sync())
	directory, err := os.Open(folder)
	check(err)
	check(directory.Sync())
	check(directory.Close())
	s := &store{values: map[string]string{}, file: file, bug: bug}
	for _, line := range strings.Split(string(content[:whole]), "\n") {
		if words := strings.Fields(line); len(words) == 2 {
			s.values[words[0]] = words[1]
		}
	}
	log.Printf("%d registers, %d bytes", len(s.values), whole)
	return s
}

func (s *store) held(key string) string {
	if value, ok := s.values[key]; ok {
		return value
	}
	return "-"
}

// cas returns what the register held.
func (s *store) cas(key, old, value string) string {
	held := s.held(key)
	if s.bug == "cas-in-two-steps" { // another goroutine may change the register now
		s.lock.Unlock()
	}
	log.Printf("cas of %s from %s to %s: it holds %s", key, old, value, held)
	if s.bug == "cas-in-two-steps" {
		s.lock.Lock()
	}
	if held == old {
		s.change(key, value)
	}
	return held
}

func (s *store) change(key, value string) {
	_, err := fmt.Fprintf(s.file, "%s %s\n", key, value)
	check(err)
	if s.bug != "no-sync" && s.bug != "answer-before-sync" {
		check(s.file.Sync())
	}
	s.values[key] = value
}

func (s *store) carryOut(words []string) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	switch {
	case len(words) == 2 && words[0] == "read":
		return "ok " + s.held(words[1])
	case len(words) == 3 && words[0] == "write":
		s.change(words[1], words[2])
		return "ok " + words[2]
	case len(words) == 4 && words[0] == "cas":
		if held := s.cas(words[1], words[2], words[3]); held != words[2] {
			return "no " + held
		}
		return "ok " + words[3]
	}
	return "unknown request"
}

func (s *store) serve(connection net.Conn) {
	defer connection.Close()
	for requests := bufio.NewScanner(connection); requests.Scan(); {
		if _, err := fmt.Fprintln(connection, s.carryOut(strings.Fields(requests.Text()))); err != nil {
			return
		}
		if s.bug == "answer-before-sync" {
			check(s.file.Sync())
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: kv PORT FOLDER [BUG]")
	}
	s := open(os.Args[2], strings.Join(os.Args[3:], ""))
	listener, err := net.Listen("tcp4", ":"+os.Args[1])
	check(err)
	for {
		connection, err := listener.Accept()
		check(err)
		go s.serve(connection)
	}
}
