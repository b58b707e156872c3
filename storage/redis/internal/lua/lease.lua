-- lease(clock, ttl, dueBy, defaultDelay, token…) → summary, leases: at most one for each token, of hosts
-- that are due now and were due by dueBy, longest due first. A lease is its token, expiry, origin,
-- record, due, gap, slots, strikes and memo of its host, and the time since when the host was due.
-- Without tokens, the call only ends holds and leases, detects a failover, and returns a summary.

-- detectFailover finds that another server served the partition last, or the same server before a
-- restart: the replication id has changed, which is new after each start and each promotion. The server
-- may then lack the last leases and due times. So it sets a fence: no lease is given until the longest
-- lease has expired. The epoch makes each host rest once more after that, because a visit may have
-- ended just before.
local function detectFailover()
  local replicationID = string.match(call('INFO', 'replication'), 'master_replid:(%x+)')
  if not replicationID then error('the server does not report master_replid') end
  if meta.fields.reign == replicationID then return end
  if getNumber(meta, 'longest') > 0 then
    setField(meta, 'fence', now + getNumber(meta, 'longest'))
    addToField(meta, 'epoch', 1)
  end
  setField(meta, 'reign', replicationID)
end

local ttl, dueBy, defaultDelay = tonumber(ARGV[2]), parseTime(ARGV[3]), tonumber(ARGV[4])

-- owesNoFailoverDelay reports whether the host has rested for the last failover. If not, it delays the
-- host: by gap, or by defaultDelay, from the end of the fence.
local function owesNoFailoverDelay(h)
  if getNumber(h, 'f') == getNumber(meta, 'epoch') then return true end
  setField(h, 'f', getNumber(meta, 'epoch'))
  local delay = getNumber(h, 'gap')
  delayHost(h, getNumber(meta, 'fence') + (delay > 0 and delay or defaultDelay))
  requeueHost(h)
  return false
end

-- storeLease stores a lease and returns the reply for it. at is the time since when the host was due.
local function storeLease(o, h, l, token, at)
  call('HSET', keyPrefix .. 'l', token, cmsgpack.pack(l))
  call('ZADD', keyPrefix .. 'o', now + ttl, token)
  addToField(o, 'out', 1)
  addToField(h, 'out', 1)
  setField(o, 's', now)
  h.lastTurn = now
  updateOrigin(o)
  return {token, now + ttl, l.o, l.record, getNumber(h, 'due'), getNumber(h, 'gap'), getNumber(h, 'slots'), getNumber(h, 'strikes'), h.fields.memo or '', at}
end

local more, leases = endHolds(), {}
more = expireLeases() or more
detectFailover()
-- The longest lease was recorded before this call. With durability none, a failover may have lost it.
if #ARGV > 4 then setField(meta, 'longest', math.max(getNumber(meta, 'longest'), ttl)) end
local i = 5 -- the next token
while ARGV[i] and not more and now >= getNumber(meta, 'fence') do
  local name, at = firstMember(keyPrefix .. 'd')
  if not name or at > now or at > dueBy then break end
  local h = loadHost(name)
  if owesNoFailoverDelay(h) then
    local o = findOrigin((firstMember(keyPrefix .. 'p:' .. name)))
    local lane = nextLane(o)
    local l = lane and takeRecord(o, lane)
    if l then
      leases[#leases + 1] = storeLease(o, h, l, ARGV[i], at)
      i = i + 1
    else
      -- The lane is shorter than its count, or no lane is due: correct the count, or try again in one
      -- second. Otherwise the host would stay at the head of d for ever.
      if lane then addToLaneLength(o, lane, -getNumber(o, 'L' .. lane)) else setField(o, 's', now + 1000000) end
      updateOrigin(o)
    end
  end
end
return {saveChanges(more), leases}
