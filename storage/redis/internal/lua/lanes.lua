-- The lanes of an origin, as in package storage/internal/schedule. Even lanes are timed: one sorted
-- set each, t:ORIGIN:LANE, by time. Odd lanes are lists, one for each rank, q:ORIGIN:LANE:RANK;
-- r:ORIGIN:LANE holds the ranks above 0 that have a list. Lane 14 holds the fingerprints of pages that
-- await their revisit; their records are in x:ORIGIN. Lanes up to 3 hold redirects of the origin's
-- own robots.txt, which no hold stops.
local revisitLane, lastHopLane, firstNormalLane = 14, 3, 10

local function isTimed(lane) return lane % 2 == 0 end

local function laneKey(o, lane, rank)
  if isTimed(lane) then return keyPrefix .. 't:' .. o.name .. ':' .. lane end
  return keyPrefix .. 'q:' .. o.name .. ':' .. lane .. ':' .. rank
end

-- addToLaneLength changes the length of a lane, and the counts n and y of the origin.
local function addToLaneLength(o, lane, n)
  addToField(o, 'L' .. lane, n)
  if lane == revisitLane then return end
  addToField(o, 'n', n)
  if lane <= lastHopLane then addToField(o, 'y', n) end
end

-- pushRecord puts a record into the list of a lane and rank: at its head (LPUSH) or tail (RPUSH).
local function pushRecord(o, lane, rank, record, command)
  local length = call(command, laneKey(o, lane, rank), record)
  if length == 1 and rank > 0 then
    call('ZADD', keyPrefix .. 'r:' .. o.name .. ':' .. lane, rank, rank)
  end
  addToLaneLength(o, lane, 1)
end

-- queueRecord puts a record at the tail of the list of its lane and rank. Lanes 1 and 5, of returned
-- records, get it at the head: the last returned is the first out.
local function queueRecord(o, lane, rank, record)
  pushRecord(o, lane, rank, record, (lane == 1 or lane == 5) and 'LPUSH' or 'RPUSH')
end

-- queueDelayed puts a record into a timed lane. It is not leased before at. A sequence number of 12 hex
-- digits begins the member, so that equal records stay distinct.
local function queueDelayed(o, lane, at, record)
  addToField(o, 'u', 1)
  call('ZADD', laneKey(o, lane), at, string.format('%012x', getNumber(o, 'u')) .. record)
  addToLaneLength(o, lane, 1)
end

-- queueRevisit stores the record of a page whose revisit is due at at, in place of an earlier one.
local function queueRevisit(o, fingerprint, at, record)
  call('HSET', keyPrefix .. 'x:' .. o.name, fingerprint, record)
  if call('ZADD', laneKey(o, revisitLane), at, fingerprint) == 1 then addToLaneLength(o, revisitLane, 1) end
end

-- parkRecord puts a record at the tail of the origin's parked ones.
local function parkRecord(o, record)
  call('RPUSH', keyPrefix .. 'k:' .. o.name, record)
  addToField(o, 'g', 1)
  addToField(meta, 'parked', 1)
  call('SADD', keyPrefix .. 'k', o.name)
end

-- isLaneDue reports whether a lane has a record that may be leased now, apart from holds.
local function isLaneDue(o, lane)
  if getNumber(o, 'L' .. lane) == 0 then return false end
  if not isTimed(lane) then return true end
  local _, at = firstMember(laneKey(o, lane))
  return at ~= nil and at <= now
end

-- nextLane returns the lane from which the next record of the origin comes, or nil. Pages whose
-- revisit is due take turns with the lower classes (lanes from 10); field T is 1 if the last turn
-- was theirs.
local function nextLane(o)
  local lane
  for l = 0, revisitLane - 1 do
    if isLaneDue(o, l) then
      lane = l
      break
    end
  end
  local revisit = isLaneDue(o, revisitLane) and (not lane or lane >= firstNormalLane and getNumber(o, 'T') == 0)
  setField(o, 'T', revisit and 1 or 0)
  return revisit and revisitLane or lane
end

-- popRecord removes and returns the first record of a lane with lists, and its rank. The lowest rank
-- goes first.
local function popRecord(o, lane)
  local record = call('LPOP', laneKey(o, lane, 0))
  if record then return record, 0 end
  local ranks = keyPrefix .. 'r:' .. o.name .. ':' .. lane
  local rank = firstMember(ranks)
  if not rank then return nil end
  local key = laneKey(o, lane, rank)
  record = call('LPOP', key)
  if call('LLEN', key) == 0 then call('ZREM', ranks, rank) end
  return record, tonumber(rank)
end

-- takeRecord removes the first record of a lane. It returns what a lease stores: the record and its
-- place, so that putBack can restore it; nil if there is none.
local function takeRecord(o, lane)
  local l = {o = o.name, lane = lane, rank = 0, at = 0, print = ''}
  if isTimed(lane) then
    local key = laneKey(o, lane)
    local member, at = firstMember(key)
    if not member then return nil end
    call('ZREM', key, member)
    l.at = at
    if lane == revisitLane then
      l.print, l.record = member, call('HGET', keyPrefix .. 'x:' .. o.name, member)
      call('HDEL', keyPrefix .. 'x:' .. o.name, member)
    else
      l.seq, l.record = string.sub(member, 1, 12), string.sub(member, 13)
    end
  else
    l.record, l.rank = popRecord(o, lane)
  end
  if not l.record then return nil end
  addToLaneLength(o, lane, -1)
  return l
end

-- putBack puts a record back into the place from which takeRecord took it.
local function putBack(o, l)
  if l.lane == revisitLane then
    queueRevisit(o, l.print, l.at, l.record)
  elseif isTimed(l.lane) then
    call('ZADD', laneKey(o, l.lane), l.at, l.seq .. l.record)
    addToLaneLength(o, l.lane, 1)
  else
    pushRecord(o, l.lane, l.rank, l.record, 'LPUSH')
  end
end

-- readyAt returns the time from which a record of the origin may be leased, or nil if it has none. A
-- hold (field e) delays all lanes but those of robots.txt.
local function readyAt(o)
  local at, hopAt
  for lane = 0, revisitLane do
    if getNumber(o, 'L' .. lane) > 0 then
      local _, from = nil, 0
      if isTimed(lane) then _, from = firstMember(laneKey(o, lane)) end
      if lane <= lastHopLane then
        hopAt = math.min(hopAt or from, from)
      else
        at = math.min(at or from, from)
      end
    end
  end
  if at then at = math.max(at, getNumber(o, 'e')) end
  if hopAt and (not at or hopAt < at) then at = hopAt end
  return at
end
