package collyfetch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// badPorts are the ports that browsers do not connect to by http (WHATWG Fetch, section
// 2.9, "port blocking"): services listen there that may take lines of a request for
// commands of theirs.
var badPorts = []uint16{
	0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
	111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
	540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
	6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
}

// storePorts are ports of databases that browsers do connect to: MySQL, PostgreSQL,
// Redis, memcached and MongoDB. No site is served there.
var storePorts = []uint16{3306, 5432, 6379, 11211, 27017}

// portRefusal says why no connection is made to a port, "" if one is.
func portRefusal(port string) string {
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil:
		return ""
	case slices.Contains(badPorts, uint16(n)):
		return "is for a service other than http, and browsers do not connect to it either"
	case slices.Contains(storePorts, uint16(n)):
		return "is a database's"
	}
	return ""
}

// RefusePort returns an error, of the kind Forbidden, if no visit connects to the port
// of an origin: a link must not have a crawl speak to a mail server or a database. A
// rule of ConnectTo that names the port, or leads to another, allows it, and so does
// a scheme whose own port it is.
func RefusePort(o decorum.Origin, rules []ConnectTo) error {
	hostPort := o.HostPort()
	colon := strings.LastIndexByte(hostPort, ':')
	if colon <= strings.LastIndexByte(hostPort, ']') {
		return nil // it is the scheme's own
	}
	host, port := strings.Trim(hostPort[:colon], "[]"), hostPort[colon+1:]
	for _, r := range rules {
		if r.matches(host, port) {
			if r.Port != "" || r.Port2 != "" {
				return nil
			}
			break
		}
	}
	return refusePort(o.String(), port)
}

// refusePort returns an error if no visit connects to a port; where is for the error.
func refusePort(where, port string) error {
	if why := portRefusal(port); why != "" {
		return &decorum.Error{Op: "connect to", URL: where, Kind: decorum.Forbidden,
			Err: fmt.Errorf("port %s %s; fetch.connect_to allows a port that it names", port, why)}
	}
	return nil
}
