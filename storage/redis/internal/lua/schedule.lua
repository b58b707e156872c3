-- Whose turn it is: what package schedule is in one process. d holds the hosts that
-- have a record to hand out and a slot free, by when; p:HOST the origins of a host;
-- o the leases that are out, by when they run out, and l what they lease; z the
-- origins under a dormant hold, by its end; v those with pages that rest, by when
-- the first is due.

-- setScore keeps a member of a sorted set where at says: nil is nowhere.
local function setScore(key, member, at)
  if at then
    call('ZADD', keyPrefix .. key, formatInteger(at), member)
  else
    call('ZREM', keyPrefix .. key, member)
  end
end

-- requeueHost gives a host its place among those that wait for their turn. One that had a
-- turn in this call goes behind those that are due.
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

-- updateCounts brings the sums of the partition up to date.
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

-- updateOrigin takes note that the origin's lanes, hold or host have changed. An origin
-- waits since its last turn at the latest, so that those that are due take turns.
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

local changedOrigins = {}
local function markChanged(o) changedOrigins[o.name] = o end

-- delayHost moves the time at which a host is due, which never moves back.
local function delayHost(h, due) setField(h, 'due', math.max(getNumber(h, 'due'), due)) end

-- setHostState gives a host the clock that the arguments from the i-th on are: due, gap,
-- slots, strikes, memo.
local function setHostState(h, i)
  delayHost(h, parseTime(ARGV[i]))
  setField(h, 'gap', tonumber(ARGV[i + 1]))
  setField(h, 'slots', tonumber(ARGV[i + 2]))
  setField(h, 'strikes', tonumber(ARGV[i + 3]))
  if h.fields.memo ~= ARGV[i + 4] then setField(h, 'memo', ARGV[i + 4]) end
end

-- findLease returns the lease with the token, or nil.
local function findLease(token)
  local packed = call('HGET', keyPrefix .. 'l', token)
  return packed and cmsgpack.unpack(packed)
end

-- endLease gives the slot of a lease free. Its first command is one that a server
-- carries out though its memory is full.
local function endLease(token, l)
  call('HDEL', keyPrefix .. 'l', token)
  call('ZREM', keyPrefix .. 'o', token)
  local o = findOrigin(l.o)
  addToField(o, 'out', -1)
  addToField(loadHost(o.fields.H), 'out', -1)
  markChanged(o)
  return o
end

-- Of what a call does beside its own work there is a limit; the next goes on.
local maxExpired = 50

-- endHolds lets dormant holds end; true if there may be more.
local function endHolds()
  if getNumber(meta, 'dormant') == 0 then return false end
  local endedHolds = call('ZRANGEBYSCORE', keyPrefix .. 'z', '-inf', now, 'LIMIT', 0, maxExpired)
  for _, name in ipairs(endedHolds) do updateOrigin(findOrigin(name)) end
  return #endedHolds == maxExpired
end

-- expireLeases lets leases run out: their records go back to the head of the queue, and
-- their hosts rest from then. It returns true if there may be more.
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

-- sum is what a caller must know to say when to ask again: at the end stand the turns
-- of the first hosts.
local maxDueTimes = 4

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

-- saveChanges writes what the call has changed, and returns the sum.
local function saveChanges(more)
  local changed = next(changedOrigins) ~= nil
  for _, o in pairs(changedOrigins) do updateOrigin(o) end
  for _, o in pairs(hashes) do changed = changed or next(o.changed) ~= nil end
  if changed then addToField(meta, 'version', 1) end
  for _, o in pairs(hashes) do saveHash(o) end
  return summary(more)
end
