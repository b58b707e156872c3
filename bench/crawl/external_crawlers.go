package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// errNotInstalled says why a program cannot be measured here. Its row is left out.
var errNotInstalled = errors.New("left out")

// wget2Command is wget2 as it follows links: with robots.txt, and nothing kept. The
// server is its proxy, since it finds hosts by their names only.
func wget2Command(p childProcessTask) (*exec.Cmd, error) {
	path, err := exec.LookPath("wget2")
	if err != nil {
		return nil, fmt.Errorf("%w: it is not installed (Debian: apt-get install wget2)", errNotInstalled)
	}
	return exec.Command(path, "--no-config", "--quiet", "--recursive", "--level=inf", "--span-hosts", "--robots=on", "--ignore-tags=link",
		"--max-threads="+strconv.Itoa(p.Workers), "--proxy=on", "--http-proxy=http://"+p.Address,
		"--output-document="+os.DevNull, seedURL()), nil
}

// wget2Version is what wget2 says it is: GNU Wget2 1.99.1 - multithreaded …
func wget2Version(childProcessTask) string {
	output, _ := exec.Command("wget2", "--version").Output()
	words := strings.Fields(string(output))
	if len(words) < 3 {
		return ""
	}
	return words[2]
}

const spiderPackage = "@spider-rs/spider-rs"

//go:embed spider.js
var spiderScript string

// spiderRSCommand is spider-rs under node, from the packages of a directory. It asks the
// seed's host alone for robots.txt.
func spiderRSCommand(p childProcessTask) (*exec.Cmd, error) {
	if p.Spider == "" {
		return nil, fmt.Errorf("%w: -spider names no directory where npm has installed %s", errNotInstalled, spiderPackage)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("%w: node is not installed", errNotInstalled)
	}
	cmd := exec.Command(node, "-e", spiderScript, "http://"+p.Address, seedURL(), strconv.Itoa(p.Web.Hosts))
	cmd.Dir = p.Spider
	return cmd, nil
}

func spiderRSVersion(p childProcessTask) string {
	var manifest struct{ Version string }
	text, err := os.ReadFile(filepath.Join(p.Spider, "node_modules", filepath.FromSlash(spiderPackage), "package.json"))
	if err != nil || json.Unmarshal(text, &manifest) != nil {
		return ""
	}
	return manifest.Version
}
