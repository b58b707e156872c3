-- The schedule of a partition: which host and origin come next, as in package
-- storage/internal/schedule. The documentation of package redis lists the keys. Fields, where 0 and
-- empty are not stored:
--
-- m   version    number of changes of the partition
--     queued     URLs in lanes below 14, of all origins
--     dormant    those of suspended origins that wait for the end of the hold
--     resting    pages that await their revisit
--     parked     parked URLs
--     seen       fingerprints in the seen sets
--     hosts      hosts with a URL queued or leased
--     longest    longest lease that may be given, in microseconds, with the reserve of Go's
--                leaseTTLRecorder
--     reign      master_replid at the last call of lease
--     epoch      number of failovers that lease has detected
--     fence      no lease is given before this time
--     board      version of the shared values
--     import     id of the last call of import
--     waits      written before WAIT, and never read
-- h   due        no visit begins before
--     gap        rest after a visit whose end is not recorded
--     slots      visits at a time; not stored: 1
--     strikes    consecutive failures
--     memo       encoded statistics
--     f          epoch for which the host has been delayed
--     q, out     its URLs queued, its leases
--     busy       1 if one of the two is not 0
-- o   H          name of the host
--     e          end of the hold
--     D          1 if the hold suspends the origin
--     L<lane>    records in a lane
--     n          records in all lanes below 14
--     y          records in lanes up to 3
--     q, d, r    n, suspended records and L14, as the totals in m include them
--     s          time of its last lease, or when its first URL was queued
--     in         1 if it is in p:HOST
--     out        its leases
--     T          1 if its last lease was a revisit
--     c, b       fingerprints in its seen set, and their buckets
--     g          parked records
--     w          how many parked records were ever taken out
--     u          sequence number of the last record in a timed lane

-- setScore sets the score of a member of a sorted set. If at is nil, it removes the member.
local function setScore(key, member, at)
  if at then
    call('ZADD', keyPrefix .. key, formatInteger(at), member)
  else
    call('ZREM', keyPrefix .. key, member)
  end
end

-- requeueHost updates the place of a host in d. A host without a free slot or without a URL to lease
-- is not in d. A host that has given a lease in this call goes behind those that are due.
local function requeueHost(h)
  local busy = getNumber(h, 'q') + getNumber(h, 'out') > 0 and 1 or 0
  addToField(meta, 'hosts', busy - getNumber(h, 'busy'))
  setField(h, 'busy', busy)
  local _, at = firstMember(keyPrefix .. 'p:' .. h.name)
  if at and getNumber(h, 'out') < math.max(getNumber(h, 'slots'), 1) then
    setScore('d', h.name, math.max(getNumber(h, 'due'), at, h.lastTurn or 0))
  else
    setScore('d', h.name, nil)
  end
end

-- updateCounts updates the totals in m, and the places of the origin in z and v.
local function updateCounts(o, h)
  local all = getNumber(o, 'n')
  if getNumber(o, 'q') == 0 and all > 0 then setField(o, 's', math.max(getNumber(o, 's'), now)) end
  addToField(meta, 'queued', all - getNumber(o, 'q'))
  addToField(h, 'q', all - getNumber(o, 'q'))
  setField(o, 'q', all)

  local suspended = 0
  if getNumber(o, 'D') == 1 and getNumber(o, 'e') > now then suspended = all - getNumber(o, 'y') end
  if suspended > 0 or getNumber(o, 'd') > 0 then
    setScore('z', o.name, suspended > 0 and getNumber(o, 'e') or nil)
  end
  addToField(meta, 'dormant', suspended - getNumber(o, 'd'))
  setField(o, 'd', suspended)

  local awaiting = getNumber(o, 'L' .. revisitLane)
  if awaiting > 0 or getNumber(o, 'r') > 0 then
    local _, revisit = firstMember(laneKey(o, revisitLane))
    if revisit and getNumber(o, 'D') == 1 then revisit = math.max(revisit, getNumber(o, 'e')) end
    setScore('v', o.name, revisit)
  end
  addToField(meta, 'resting', awaiting - getNumber(o, 'r'))
  setField(o, 'r', awaiting)
end

-- updateOrigin updates counts and places after the lanes, the hold or the host of an origin have
-- changed. The score in p:HOST is at least the time of the origin's last turn, so that origins that
-- are due take turns.
local function updateOrigin(o)
  local h = loadHost(o.fields.H)
  updateCounts(o, h)
  local at = readyAt(o)
  if at or getNumber(o, 'in') == 1 then
    setScore('p:' .. h.name, o.name, at and math.max(at, getNumber(o, 's')))
  end
  setField(o, 'in', at and 1 or 0)
  requeueHost(h)
end

-- markChanged has saveChanges call updateOrigin for an origin.
local changedOrigins = {}
local function markChanged(o) changedOrigins[o.name] = o end

-- delayHost sets the time at which a host is due, unless that is later already.
local function delayHost(h, due) setField(h, 'due', math.max(getNumber(h, 'due'), due)) end

-- setHostState sets the state of a host from the five arguments from index i: due, gap, slots,
-- strikes, memo.
local function setHostState(h, i)
  delayHost(h, parseTime(ARGV[i]))
  setField(h, 'gap', tonumber(ARGV[i + 1]))
  setField(h, 'slots', tonumber(ARGV[i + 2]))
  setField(h, 'strikes', tonumber(ARGV[i + 3]))
  if h.fields.memo ~= ARGV[i + 4] then setField(h, 'memo', ARGV[i + 4]) end
end

-- findLease returns what takeRecord returned for the lease with a token, or nil.
local function findLease(token)
  local packed = call('HGET', keyPrefix .. 'l', token)
  return packed and cmsgpack.unpack(packed)
end

-- endLease ends a lease, which frees a slot of its host, and returns its origin. Its first command is
-- a deletion, which a server carries out even if its memory is full.
local function endLease(token, l)
  call('HDEL', keyPrefix .. 'l', token)
  call('ZREM', keyPrefix .. 'o', token)
  local o = findOrigin(l.o)
  addToField(o, 'out', -1)
  addToField(loadHost(o.fields.H), 'out', -1)
  markChanged(o)
  return o
end

-- maxExpired is how many holds, and how many leases, one call ends. The next call ends more.
local maxExpired = 50

-- endHolds ends the holds of suspended origins that are over. It returns true if there may be more.
local function endHolds()
  if getNumber(meta, 'dormant') == 0 then return false end
  local endedHolds = call('ZRANGEBYSCORE', keyPrefix .. 'z', '-inf', now, 'LIMIT', 0, maxExpired)
  for _, name in ipairs(endedHolds) do updateOrigin(findOrigin(name)) end
  return #endedHolds == maxExpired
end

-- expireLeases ends expired leases. Their records go to the head of the queue (lane 1 or 5), and their
-- hosts rest for gap from the expiry. It returns true if there may be more.
local function expireLeases()
  local expired = call('ZRANGEBYSCORE', keyPrefix .. 'o', '-inf', now, 'WITHSCORES', 'LIMIT', 0, maxExpired)
  for i = 1, #expired, 2 do
    local l = findLease(expired[i])
    local o = endLease(expired[i], l)
    local h = loadHost(o.fields.H)
    delayHost(h, tonumber(expired[i + 1]) + getNumber(h, 'gap'))
    queueRecord(o, l.lane <= lastHopLane and 1 or 5, 0, l.record)
    updateOrigin(o)
  end
  return #expired == 2 * maxExpired
end

-- maxDueTimes is how many due times of hosts a summary has: MaxDueTimes of package client.
local maxDueTimes = 4

-- summary returns what a process must know of the partition to choose its calls: see
-- parsePartitionSummary of package client. -1 stands for a time that does not come. Due times of the
-- first hosts are at the end. more is true if leases or holds have ended that no call has handled.
local function summary(more)
  local all = {getNumber(meta, 'version'), now, call('ZCARD', keyPrefix .. 'o'), -1, getNumber(meta, 'queued'),
    getNumber(meta, 'dormant'), -1, getNumber(meta, 'resting'), -1, getNumber(meta, 'hosts'),
    getNumber(meta, 'parked'), getNumber(meta, 'seen'), call('ZCOUNT', keyPrefix .. 'd', '-inf', now), more and 1 or 0,
    tonumber(string.sub(meta.fields.reign or '', 1, 12), 16) or 0}
  local function setFirstScore(i, key) -- if there is one
    if all[i - 1] > 0 then all[i] = select(2, firstMember(keyPrefix .. key)) or -1 end
  end
  setFirstScore(4, 'o')
  setFirstScore(7, 'z')
  setFirstScore(9, 'v')
  local dueTimes = call('ZRANGE', keyPrefix .. 'd', 0, maxDueTimes - 1, 'WITHSCORES')
  for i = 2, #dueTimes, 2 do all[#all + 1] = math.max(tonumber(dueTimes[i]), getNumber(meta, 'fence')) end
  return all
end

-- saveChanges writes what the call has changed, adds 1 to the version if anything has, and returns the
-- summary.
local function saveChanges(more)
  local changed = next(changedOrigins) ~= nil
  for _, o in pairs(changedOrigins) do updateOrigin(o) end
  for _, o in pairs(hashes) do changed = changed or next(o.changed) ~= nil end
  if changed then addToField(meta, 'version', 1) end
  for _, o in pairs(hashes) do saveHash(o) end
  return summary(more)
end
