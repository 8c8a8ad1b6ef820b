-- SPDX-License-Identifier: Apache-2.0
-- Wireshark and tshark: the tag in Evenhand's test frames (docs/reference/frame.md), whatever their UDP ports are.
--
--   evenhand plan dissector > ~/.local/lib/wireshark/plugins/evenhand.lua
--
-- Then `evenhand` finds test frames, and `evenhand.sequence == 17 && evenhand.direction == 1` finds one.

local MAGIC = 0xE5E401
local TAG_OCTETS = 18
local MOST_PAYLOAD_OCTETS = 128
local DIRECTIONS = { [0] = "forward", [1] = "reverse" }

local evenhand = Proto("evenhand", "Evenhand test frame")
local fields = {
   magic = ProtoField.uint24("evenhand.magic", "Magic", base.HEX),
   trial = ProtoField.uint16("evenhand.trial", "Trial, as the session numbers it"),
   direction = ProtoField.uint8("evenhand.direction", "Direction", base.DEC, DIRECTIONS),
   stream = ProtoField.uint8("evenhand.stream", "Stream"),
   sequence = ProtoField.uint64("evenhand.sequence", "Sequence number"),
   time = ProtoField.uint64("evenhand.time", "Time, in ticks of the sender"),
}
evenhand.fields = {
   fields.magic, fields.trial, fields.direction, fields.stream, fields.sequence, fields.time,
}

-- Lua 5.2 has no operators for bits, and later versions no library for them.
local function exclusive_or(a, b)
   local result, bit = 0, 1
   while a > 0 or b > 0 do
      if a % 2 ~= b % 2 then result = result + bit end
      a, b, bit = math.floor(a / 2), math.floor(b / 2), bit * 2
   end
   return result
end

-- The seven bits that are combined with the stream's number.
local function time_check(tag)
   local folded = 0
   for at = 12, 16, 2 do folded = exclusive_or(folded, tag(at, 2):uint()) end
   local check = exclusive_or(folded, exclusive_or(math.floor(folded / 2 ^ 7), math.floor(folded / 2 ^ 14)))
   return check % 128
end

-- Where the tag is: behind the payload of its flow, if that has one, and in front of octets that rise from the length of
-- that payload. The last place, since octets of a payload may look like a tag.
local function place_of_tag(payload)
   local octets = payload:len() - TAG_OCTETS
   for at = math.min(octets, MOST_PAYLOAD_OCTETS), 0, -1 do
      local follows = octets == at or payload(at + TAG_OCTETS, 1):uint() == at
      if payload(at, 3):uint() == MAGIC and (at == 0 or follows) then return at end
   end
end

local function dissect(payload, packet, tree)
   local at = place_of_tag(payload)
   if at == nil then return false end
   local tag = payload(at, TAG_OCTETS)
   local octet = tag(5, 1):uint()
   local direction = math.floor(octet / 128)
   local sequence = tag(6, 6):uint64()
   local branch = tree:add(evenhand, payload(), "Evenhand test frame: " .. DIRECTIONS[direction] .. " " .. tostring(sequence))
   branch:add(fields.magic, tag(0, 3))
   branch:add(fields.trial, tag(3, 2))
   branch:add(fields.direction, tag(5, 1), direction)
   branch:add(fields.stream, tag(5, 1), exclusive_or(octet % 128, time_check(tag)))
   branch:add(fields.sequence, tag(6, 6), sequence)
   branch:add(fields.time, tag(12, 6), tag(12, 6):uint64())
   packet.cols.protocol = "Evenhand"
   packet.cols.info = DIRECTIONS[direction] .. " " .. tostring(sequence)
   return true
end

-- The UDP ports are drawn, and many of them belong to some other protocol. All ports are ours therefore, and what is
-- not a test frame goes to whom the port belonged before.
local ports = DissectorTable.get("udp.port")
local others = {}
for port = 1, 65535 do others[port] = ports:get_dissector(port) end

function evenhand.dissector(payload, packet, tree)
   if dissect(payload, packet, tree) then return payload:len() end
   local low, high = math.min(packet.src_port, packet.dst_port), math.max(packet.src_port, packet.dst_port)
   local other = others[low] or others[high]
   return other and other:call(payload, packet, tree) or 0
end

ports:add("1-65535", evenhand)
