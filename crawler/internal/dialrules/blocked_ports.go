package dialrules

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// blockedPorts are the ports to which browsers do not connect over http (WHATWG Fetch, section 2.9,
// "port blocking"): their services may interpret lines of a request as commands.
var blockedPorts = []uint16{
	0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95,
	101, 102, 103, 104, 109, 110,
	111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
	540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
	6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
}

// databasePorts are the ports of databases to which browsers do connect: MySQL, PostgreSQL, Redis,
// memcached and MongoDB. No website uses them.
var databasePorts = []uint16{3306, 5432, 6379, 11211, 27017}

// portRefusalReason returns why no visit connects to port, or "" if visits may.
func portRefusalReason(port string) string {
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil:
		return ""
	case slices.Contains(blockedPorts, uint16(n)):
		return "is for a service other than http, and browsers do not connect to it either"
	case slices.Contains(databasePorts, uint16(n)):
		return "is a database's"
	}
	return ""
}

// CheckPort returns an error of Kind Forbidden if visits must not connect to the port of o, so that
// a link cannot make the crawl speak to a mail server or a database. A port is allowed if it is the
// default of its scheme, or if the matching rule of ConnectToRules names it or maps it to another.
func CheckPort(o decorum.Origin, rules []ConnectTo) error {
	hostPort := o.HostPort()
	colon := strings.LastIndexByte(hostPort, ':')
	if colon <= strings.LastIndexByte(hostPort, ']') {
		return nil // the default port of the scheme
	}
	host, port := strings.Trim(hostPort[:colon], "[]"), hostPort[colon+1:]
	if r := firstMatchingConnectTo(rules, host, port); r.requestedPort != "" || r.targetPort != "" {
		return nil
	}
	return checkPort(o.String(), port)
}

// CheckServerChosenPort is CheckPort for an address that a server sent to a visit: the server
// chooses the port, so no rule and no scheme allows a blocked one.
func CheckServerChosenPort(addr netip.AddrPort) error {
	return checkPort(addr.String(), strconv.Itoa(int(addr.Port())))
}

// checkPort returns an error with a decorum.Decision if visits must not connect to port. where is
// the URL or address in the error.
func checkPort(where, port string) error {
	if why := portRefusalReason(port); why != "" {
		return &decorum.Error{Op: "connect to", URL: where, Kind: decorum.Forbidden,
			Err: decorum.Decision{Action: decorum.Refuse, Reason: decorum.ReasonPort,
				Detail: fmt.Sprintf("port %s %s; fetch.connect_to allows a port that it names", port, why)}.Err()}
	}
	return nil
}
