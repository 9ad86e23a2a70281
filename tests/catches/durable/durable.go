// Command durable is the server of durable.c in Go, with the same requests, answers, files and bugs.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

const (
	sector = 512
	record = 2 * sector
)

var (
	lock      sync.Mutex
	registers = map[string]string{}
	term      int
	log       *os.File
	folder    string
	bug       = "none"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func syncFolder() {
	directory, err := os.Open(folder)
	check(err)
	check(directory.Sync())
	check(directory.Close())
}

func store(key, value string) {
	bytes := make([]byte, record)
	copy(bytes, key)
	copy(bytes[sector:], value)
	_, err := log.Write(bytes)
	check(err)
	if bug != "acknowledged-before-sync" {
		check(log.Sync())
	}
	registers[key] = value
}

func storeTerm() {
	path := filepath.Join(folder, "term")
	file, err := os.Create(path + ".new")
	check(err)
	_, err = fmt.Fprintln(file, term)
	check(err)
	check(file.Sync())
	check(file.Close())
	check(os.Rename(path+".new", path))
	if bug != "lost-rename" {
		syncFolder()
	}
}

func text(bytes []byte) string {
	return strings.TrimRight(string(bytes), "\x00")
}

// load reads the files, and cuts off a last record that is not whole.
func load() {
	var err error
	log, err = os.OpenFile(filepath.Join(folder, "log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	check(err)
	whole := int64(0)
	for {
		bytes := make([]byte, record)
		size, err := io.ReadFull(log, bytes)
		if size == 0 || errors.Is(err, io.ErrUnexpectedEOF) && bug != "torn-tail" {
			break
		}
		registers[text(bytes[:sector])] = text(bytes[sector:])
		whole += int64(size)
	}
	check(log.Truncate(whole))
	check(log.Sync())
	syncFolder()
	content, err := os.ReadFile(filepath.Join(folder, "term"))
	if !errors.Is(err, os.ErrNotExist) {
		check(err)
		term, _ = strconv.Atoi(strings.TrimSpace(string(content)))
	}
}

func carryOut(words []string) string {
	lock.Lock()
	defer lock.Unlock()
	if words[0] == "vote" {
		term++
		if bug != "vote-before-store" {
			storeTerm()
		}
		return fmt.Sprintf("ok %d", term)
	}
	held := registers[words[1]]
	if held == "" {
		held = "-"
	}
	switch {
	case words[0] == "write":
		store(words[1], words[2])
	case words[0] == "cas" && held == words[2]:
		store(words[1], words[3])
	case words[0] == "cas":
		return "no " + held
	}
	return "ok " + held
}

func serve(connection net.Conn) {
	defer connection.Close()
	for lines := bufio.NewScanner(connection); lines.Scan(); {
		if _, err := fmt.Fprintln(connection, carryOut(strings.Fields(lines.Text()))); err != nil {
			return
		}
		lock.Lock()
		if bug == "acknowledged-before-sync" {
			check(log.Sync())
		}
		if bug == "vote-before-store" {
			storeTerm()
		}
		lock.Unlock()
	}
}

func main() {
	folder = os.Args[2]
	if len(os.Args) > 3 {
		bug = os.Args[3]
	}
	load()
	listener, err := net.Listen("tcp", ":"+os.Args[1])
	check(err)
	for {
		connection, err := listener.Accept()
		check(err)
		go serve(connection)
	}
}
