"""From one declaration of an operator to its generated Python call."""
