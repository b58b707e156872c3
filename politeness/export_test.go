package politeness

import "strings"

// AnswerTable returns answerScopes as the table of docs/crawling.md.
func AnswerTable() string {
	var b strings.Builder
	b.WriteString("| answer | says something about | pace of the host |\n|---|---|---|\n")
	for _, row := range answerScopes {
		b.WriteString("| " + row.answer + " | " + row.of + " | " + row.consequence + " |\n")
	}
	return b.String()
}

// HostCount returns how many hosts are in memory.
func (l *Limiter) HostCount() int {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	return len(l.sharedHosts.throttlesByHost)
}

// AddrCounts returns how many addresses, and how many last addresses of hosts, are in memory.
func (l *Limiter) AddrCounts() (addresses, hosts int) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	return len(l.sharedHosts.throttlesByAddr), len(l.sharedHosts.lastAddrByHost)
}

// LearnedPace returns the pace that the crawls of this process have learned of host.
func (l *Limiter) LearnedPace(host string) LearnedPace {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	return l.sharedHosts.throttlesByHost[host].learnedPace
}
