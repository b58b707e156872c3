package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// errMissing says why a program cannot be measured here. Its row is left out.
var errMissing = errors.New("left out")

// byWget2 is wget2 as it follows links: with robots.txt, and nothing kept. The
// server is its proxy, since it finds hosts by their names only.
func byWget2(p plan) (*exec.Cmd, error) {
	path, err := exec.LookPath("wget2")
	if err != nil {
		return nil, fmt.Errorf("%w: it is not installed (Debian: apt-get install wget2)", errMissing)
	}
	return exec.Command(path, "--no-config", "--quiet", "--recursive", "--level=inf", "--span-hosts", "--robots=on", "--ignore-tags=link",
		"--max-threads="+strconv.Itoa(p.Workers), "--proxy=on", "--http-proxy=http://"+p.Address,
		"--output-document="+os.DevNull, seed()), nil
}

// ofWget2 is what wget2 says it is: GNU Wget2 1.99.1 - multithreaded …
func ofWget2(plan) string {
	said, _ := exec.Command("wget2", "--version").Output()
	words := strings.Fields(string(said))
	if len(words) < 3 {
		return ""
	}
	return words[2]
}

const spiderPackage = "@spider-rs/spider-rs"

//go:embed spider.js
var spiderScript string

// bySpider is spider-rs under node, from the packages of a directory. It asks the
// seed's host alone for robots.txt.
func bySpider(p plan) (*exec.Cmd, error) {
	if p.Spider == "" {
		return nil, fmt.Errorf("%w: -spider names no directory where npm has installed %s", errMissing, spiderPackage)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("%w: node is not installed", errMissing)
	}
	cmd := exec.Command(node, "-e", spiderScript, "http://"+p.Address, seed(), strconv.Itoa(p.Web.Hosts))
	cmd.Dir = p.Spider
	return cmd, nil
}

func ofSpider(p plan) string {
	var about struct{ Version string }
	text, err := os.ReadFile(filepath.Join(p.Spider, "node_modules", filepath.FromSlash(spiderPackage), "package.json"))
	if err != nil || json.Unmarshal(text, &about) != nil {
		return ""
	}
	return about.Version
}

// ofModule is the version of a module that this program is built with.
func ofModule(path string) func(plan) string {
	return func(plan) string {
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, m := range info.Deps {
				if m.Path == path {
					return m.Version
				}
			}
		}
		return ""
	}
}

// ofDecorum is the revision that this program is built from.
func ofDecorum(plan) string {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return cmp.Or(revision, "this one")
}
