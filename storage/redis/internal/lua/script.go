package lua

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed *.lua
var files embed.FS

// A Script is the text of a script, with the shared files before it. Servers that have seen the text
// know it by its SHA-1.
type Script struct{ Text, SHA1 string }

// The scripts. Each file says what its script takes and returns.
var (
	Add             = assemble("add")
	Lease           = assemble("lease")
	RecordLeaseTTL  = assemble("record_lease_ttl")
	Ack             = assemble("ack")
	Summary         = assemble("summary")
	ConfirmDue      = assemble("confirm_due")
	RenewLease      = assemble("renew_lease")
	MarkSent        = assemble("mark_sent")
	ReturnLeases    = assemble("return_leases")
	Hold            = assemble("hold")
	SetNote         = assemble("set_note")
	AwaitingRevisit = assemble("awaiting_revisit")
	Reschedule      = assemble("reschedule")
	ReadParked      = assemble("read_parked")
	Unpark          = assemble("unpark")
	HasSeen         = assemble("has_seen")
	ListSeen        = assemble("list_seen")
	OriginInfo      = assemble("origin_info")
	ListQueues      = assemble("list_queues")
	QueueRecords    = assemble("queue_records")
	Import          = assemble("import")
	SetSharedValue  = assemble("set_shared_value")
	GetSharedValues = assemble("get_shared_values")
	Heartbeat       = assemble("heartbeat")
	AdmitHosts      = assemble("admit_hosts")
	HostCount       = assemble("host_count")
)

// assemble returns the script of the named file, with the shared files before it. The order of these
// matters: a local function of Lua must be declared before it is used.
func assemble(name string) *Script {
	var text strings.Builder
	for _, name := range []string{"common", "lanes", "schedule", "seen_set", name} {
		part, err := files.ReadFile(name + ".lua")
		if err != nil {
			panic(err) // the files are embedded: a missing one is a bug
		}
		text.Write(part)
	}
	sum := sha1.Sum([]byte(text.String()))
	return &Script{text.String(), hex.EncodeToString(sum[:])}
}
