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

	"github.com/decorum-crawler/decorum/bench/internal/web"
)

// errNotInstalled is the error for an external program that this machine lacks. The table leaves
// its row out.
var errNotInstalled = errors.New("left out")

// wget2Command returns wget2, following links, obeying robots.txt and writing no files. It uses the
// server as its proxy, because it has no option to connect to another address. With https it does
// not ask a proxy to connect (it starts TLS with the proxy itself): it crawls the hosts by their
// addresses.
func wget2Command(p childProcessTask) (*exec.Cmd, error) {
	path, err := exec.LookPath("wget2")
	if err != nil {
		return nil, fmt.Errorf("%w: it is not installed (Debian: apt-get install wget2)", errNotInstalled)
	}
	args := []string{"--no-config", "--quiet", "--recursive", "--level=inf", "--span-hosts",
		"--robots=on", "--ignore-tags=link", "--max-threads=" + strconv.Itoa(p.Workers), "--proxy=on",
		"--output-document=" + os.DevNull}
	if p.Web.TLS == nil {
		return exec.Command(path, append(args, "--http-proxy=http://"+p.Address.Proxy, p.Web.seedURL())...), nil
	}
	// The files of OCSP and HSTS are in the home directory.
	seed := addressOrigin(p.Address.TLS)(0) + web.PagePath(0)
	return exec.Command(path, append(args, "--ca-certificate="+p.Address.CAFile, "--ocsp=off", "--hsts=off",
		seed)...), nil
}

// wget2Version returns the third word of: GNU Wget2 1.99.1 - multithreaded …
func wget2Version(childProcessTask) string {
	output, _ := exec.Command("wget2", "--version").Output()
	words := strings.Fields(string(output))
	if len(words) < 3 {
		return ""
	}
	return words[2]
}

// spiderPackage is the npm package of spider-rs.
const spiderPackage = "@spider-rs/spider-rs"

// spiderScript runs spider-rs with three arguments: the proxy, the seed and the number of hosts.
//
//go:embed spider.js
var spiderScript string

// spiderRSCommand returns spider-rs under node, with the packages in p.Spider. It requests
// robots.txt only from the seed's host.
func spiderRSCommand(p childProcessTask) (*exec.Cmd, error) {
	if p.Spider == "" {
		return nil, fmt.Errorf("%w: -spider names no directory where npm has installed %s",
			errNotInstalled, spiderPackage)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("%w: node is not installed", errNotInstalled)
	}
	cmd := exec.Command(node, "-e", spiderScript, "http://"+p.Address.Proxy, p.Web.seedURL(),
		strconv.Itoa(p.Web.Hosts))
	cmd.Dir = p.Spider
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+p.Address.CAFile)
	return cmd, nil
}

// spiderRSVersion returns the version of the npm package in p.Spider.
func spiderRSVersion(p childProcessTask) string {
	var manifest struct{ Version string }
	text, err := os.ReadFile(filepath.Join(p.Spider, "node_modules", filepath.FromSlash(spiderPackage), "package.json"))
	if err != nil || json.Unmarshal(text, &manifest) != nil {
		return ""
	}
	return manifest.Version
}
